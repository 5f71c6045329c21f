// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/view_table.h"

#include <QCoreApplication>

#include <algorithm>
#include <array>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/views/attention_heatmap_view.h"
#include "ui/views/image_grid_view.h"
#include "ui/views/layer_metrics_view.h"
#include "ui/views/metric_table_view.h"
#include "ui/views/offset_profile_view.h"
#include "ui/views/position_map_view.h"
#include "ui/views/position_similarity_view.h"
#include "ui/views/relative_bias_view.h"
#include "ui/views/stack_comparison_view.h"
#include "ui/views/tensor_browser_view.h"

namespace posiscope::ui {
namespace {

bool has_maps(const core::Session& session)
{
    return session.maps != nullptr;
}

bool has_model(const core::Session& session)
{
    return session.model != nullptr;
}

bool has_metrics(const core::Session& session)
{
    return session.metrics != nullptr && !session.metrics->rows.empty();
}

template <class View>
AnalysisView* create(QWidget* parent)
{
    return new View(parent);
}

constexpr const char* wang = QT_TRANSLATE_NOOP(
    "views", "Wang et al., \u201cOn Position Embeddings in BERT\u201d, ICLR 2021 (identical-word probing).");

} // namespace

std::span<const ViewRow> view_table()
{
    static constexpr std::array rows{
        ViewRow{"attention_heatmap", QT_TRANSLATE_NOOP("views", "Attention heatmap"),
                QT_TRANSLATE_NOOP(
                    "views",
                    "How much each position attends to each other position when every position holds the "
                    "same word, averaged over many words. What differs between the cells is what the "
                    "position embedding does."),
                QT_TRANSLATE_NOOP(
                    "views",
                    "A row is the attending position (query), a column the attended position (key); query "
                    "0 is at the top, key 0 at the left, so the diagonal is a word looking at itself. "
                    "Stripes along the diagonal mean that only the distance counts (translation "
                    "invariance). Bright cells near the diagonal mean that near words count more "
                    "(locality). A dark line on the diagonal is the white band: a word looks past itself. "
                    "A bright first column means that the first position draws attention by itself."),
                wang, false, has_maps, create<AttentionHeatmapView>},
        ViewRow{"offset_profile", QT_TRANSLATE_NOOP("views", "Offset profile"),
                QT_TRANSLATE_NOOP(
                    "views",
                    "The mean of each diagonal of the heatmap against its offset: key position minus query "
                    "position, negative for words that precede. The band around the line is the spread "
                    "along the diagonal."),
                QT_TRANSLATE_NOOP(
                    "views",
                    "A narrow band means that the distance alone decides (translation invariance). A line "
                    "that falls to both sides means that nearer words count more (monotonicity). Equal "
                    "sides mean symmetry; a higher left side means that words look back. A dip around "
                    "offset 0 is the white band, which is shaded where there is one."),
                wang, false, has_maps, create<OffsetProfileView>},
        ViewRow{"metric_table", QT_TRANSLATE_NOOP("views", "Properties"),
                QT_TRANSLATE_NOOP(
                    "views",
                    "The properties of a position embedding as numbers, one row for each model, layer, "
                    "head, quantity and choice of positions, with their standard errors over the choice of "
                    "words (bootstrap over groups of words)."),
                QT_TRANSLATE_NOOP(
                    "views",
                    "Violations lie between 0 (the property holds perfectly) and 1. On noise, translation "
                    "invariance is near 1, symmetry and monotonicity near 1/2. Compare maps of equal "
                    "length only. A dash is a property that is not defined for this map."),
                wang, true, has_metrics, create<MetricTableView>},
        ViewRow{
            "position_map", QT_TRANSLATE_NOOP("views", "Position map"),
            QT_TRANSLATE_NOOP(
                "views", "The position vectors as points of the plane, by t-SNE (which keeps near vectors "
                         "near) and, beside "
                         "it, along their two principal components. Coloured by position; a line joins each "
                         "position to the "
                         "next; rings are rows that are special or that no position uses. For relative "
                         "schemes the vectors "
                         "of the offsets, for rotary positions the cosines and sines of the angles. t-SNE "
                         "moves points "
                         "y so that q_ij = (1 + |y_i - y_j|²)⁻¹ / Z comes close to p_ij, Gaussian in the "
                         "vectors' distances: it lessens KL = Σ p log(p / q)."),
            QT_TRANSLATE_NOOP(
                "views",
                "A thread that runs from the first position to the last means that the model tells positions "
                "apart in their order. Knots are positions that it hardly tells apart. Distances between far "
                "parts of a t-SNE map, and its turn, mean nothing; those of the principal components do. "
                "Another "
                "seed and another perplexity show what is stable."),
            QT_TRANSLATE_NOOP("views",
                              "Van der Maaten and Hinton, “Visualizing Data using t-SNE”, JMLR 2008; "
                              "the map of BERT's positions: Wang et al., ICLR 2021."),
            false, has_model, create<PositionMapView>},
        ViewRow{"position_similarity", QT_TRANSLATE_NOOP("views", "Position similarity"),
                QT_TRANSLATE_NOOP(
                    "views",
                    "What the position vectors say by themselves: cosine or dot product of every two, their "
                    "lengths, "
                    "the singular values with the dimensions that hold 90, 95 and 99 % of the squared "
                    "length, the "
                    "Fourier spectrum along the positions (power[k] = Σ |Σ x_p exp(-2πi kp/n)|² "
                    "over the features, without their means), and how well position and order can be read "
                    "from them by "
                    "linear means (ridge and logistic regression, tested on positions that were left out)."),
                QT_TRANSLATE_NOOP("views", "A bright diagonal that fades to both sides means that near "
                                           "positions are alike; stripes mean "
                                           "waves, which show as peaks of the spectrum. Few dimensions mean "
                                           "a simple curve. An order that is "
                                           "told right in half of the cases is not there for linear means."),
                QT_TRANSLATE_NOOP("views", "Wang and Chen, “What Do Position Embeddings Learn?”, EMNLP 2020 "
                                           "(regressions); folds over positions are this program's."),
                false, has_model, create<PositionSimilarityView>},
        ViewRow{
            "relative_bias", QT_TRANSLATE_NOOP("views", "Relative bias"),
            QT_TRANSLATE_NOOP(
                "views",
                "What a relative scheme adds to the logits before any word is read, against the offset: key "
                "position minus query position. Thin lines are heads, the thick one their mean; faint "
                "vertical "
                "lines are where buckets begin. For vectors of offsets (Shaw, NEZHA, XLNet, DeBERTa) the "
                "term "
                "without words, scale * (b_q . r_o); for rotary positions the mean of cos(angle * offset). "
                "The map "
                "beside it shows the same for every query and key."),
            QT_TRANSLATE_NOOP("views", "A peak at 0 that falls to both sides means that near words count "
                                       "more. A dip at 0 is the white "
                                       "band, which is shaded: a word looks past itself. Flat ends mean that "
                                       "far offsets are not told "
                                       "apart, as within the last bucket."),
            QT_TRANSLATE_NOOP(
                "views",
                "Raffel et al. 2020, sec. 2.1 (buckets); Press et al. 2022 (ALiBi); Shaw et al. 2018; "
                "Su et al. 2021 (rotary); the white band: Wang et al., ICLR 2021."),
            false, has_model, create<RelativeBiasView>},
        ViewRow{"image_grid", QT_TRANSLATE_NOOP("views", "Image grid"),
                QT_TRANSLATE_NOOP("views",
                                  "For models that read images: one small map for each patch, laid "
                                  "out as the patches are, that shows the cosine of its position vector "
                                  "with every patch's (for BEiT and Swin, which have no such vectors, the "
                                  "bias that is added to the logits); the one that was clicked is shown "
                                  "enlarged. The map of a class token stands apart below. Beneath them the "
                                  "metrics in two dimensions, of the vectors and of the attention that the "
                                  "probe found: translation invariance by the distance in rows and columns, "
                                  "monotonicity along rows and columns."),
                QT_TRANSLATE_NOOP(
                    "views",
                    "A bright spot at the patch's own place that fades around it means that the model has "
                    "learned the "
                    "grid; bright rows and columns mean that it tells rows and columns apart by themselves."),
                QT_TRANSLATE_NOOP("views",
                                  "Dosovitskiy et al., “An Image is Worth 16x16 Words”, ICLR 2021, fig. 7."),
                false, has_model, create<ImageGridView>},
        ViewRow{
            "layer_metrics", QT_TRANSLATE_NOOP("views", "Layers"),
            QT_TRANSLATE_NOOP("views", "A property metric of every layer, one line for each stack, from one "
                                       "pass of the probe through the "
                                       "whole network; or how far each query looks, Σ p(j) |i − j|, a line "
                                       "for each layer, also as the "
                                       "ratio to a row that looks at all its keys alike."),
            QT_TRANSLATE_NOOP(
                "views",
                "A line that rises means that deeper layers keep the property less. The ring is the layer of "
                "the "
                "settings; a click on another one goes there. Where positions act on queries and keys alone, "
                "identical words stay identical and only the scheme's own effect of the offset can show."),
            wang, false, has_model, create<LayerMetricsView>},
        ViewRow{"stack_comparison", QT_TRANSLATE_NOOP("views", "Stacks"),
                QT_TRANSLATE_NOOP(
                    "views",
                    "The two stacks of a model side by side on the same words: their maps on one colour "
                    "scale with the "
                    "numbers that tell them apart, and how far each query looks, Σ p(j) |i − j|, also as the "
                    "ratio to "
                    "a row that looks at all its keys alike. A stack with fewer layers shows its last."),
                QT_TRANSLATE_NOOP("views", "The paper saw that decoders attend to the first positions and "
                                           "look farther later on, and that the "
                                           "encoder of a translation model attends more to following words "
                                           "(a negative direction balance). A "
                                           "decoder's future does not exist, so its balance is not defined."),
                wang, false, has_model, create<StackComparisonView>},
        ViewRow{
            "tensor_browser", QT_TRANSLATE_NOOP("views", "Model and tensors"),
            QT_TRANSLATE_NOOP(
                "views",
                "What the checkpoint is and what it holds: family, position scheme and sizes of the model, "
                "and "
                "every tensor with its shape, its type in the file and its size, as a tree by name. Of the "
                "tensor that is chosen, the numbers: least, largest, mean, standard deviation, how many are "
                "not finite; and a picture. Only what is shown is read. Values are float32, as all "
                "computations take them."),
            QT_TRANSLATE_NOOP(
                "views",
                "Blue is negative, red positive, white zero, on a scale from -m to m: m is the largest "
                "magnitude "
                "shown, or the one that 99 % of the values stay below, with clipped ends marked. A position "
                "table shows waves or stripes along its rows; rows that were never trained look like noise "
                "or are zero. Of a large matrix a cell shows the mean of the values it stands "
                "for, or single rows in equal steps where reading all of them would take long: the line "
                "below "
                "the picture says which. NaN or infinite values in a weight mean that training went wrong or "
                "that the file is damaged."),
            QT_TRANSLATE_NOOP("views", "The standard deviation is that of the values themselves (divided by "
                                       "their number), over pieces "
                                       "as Chan, Golub and LeVeque 1979. The SHA-256 of the tensors used is "
                                       "over the lines \u201cname "
                                       "shape sha256\u201d of what the probe read, float32, sorted by name: "
                                       "as in provenance records."),
            false, has_model, create<TensorBrowserView>, true},
    };
    return rows;
}

const ViewRow* find_view(std::string_view id)
{
    const auto rows = view_table();
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const ViewRow& row) { return row.id == id; });
    return found == rows.end() ? nullptr : &*found;
}

QString view_title(const ViewRow& row)
{
    return QCoreApplication::translate("views", row.title);
}

QString view_explanation(const ViewRow& row)
{
    const auto translated = [](const char* text) {
        return QCoreApplication::translate("views", text).toHtmlEscaped();
    };
    const auto heading = [](const QString& text) {
        return QStringLiteral("<h3>%1</h3>").arg(text.toHtmlEscaped());
    };
    const auto paragraph = [](const QString& html) { return QStringLiteral("<p>%1</p>").arg(html); };
    QString html = QStringLiteral("<h2>%1</h2>").arg(view_title(row).toHtmlEscaped());
    html += paragraph(translated(row.explanation));
    html += heading(QCoreApplication::translate("views", "How to read it")) +
            paragraph(translated(row.how_to_read));
    if (row.shows_metrics) {
        html += heading(QCoreApplication::translate("views", "Columns"));
        for (const core::Metric& metric : core::metric_list())
            html += paragraph(QStringLiteral("<b>%1</b> (%2): %3 <i>%4</i>")
                                  .arg(to_qstring(metric.label).toHtmlEscaped(),
                                       to_qstring(metric.short_label).toHtmlEscaped(),
                                       to_qstring(metric.explanation).toHtmlEscaped(),
                                       to_qstring(metric.source).toHtmlEscaped()));
    }
    html += heading(QCoreApplication::translate("views", "Source")) + paragraph(translated(row.source));
    return html;
}

} // namespace posiscope::ui
