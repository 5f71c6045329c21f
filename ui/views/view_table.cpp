// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/view_table.h"

#include <QCoreApplication>

#include <algorithm>
#include <array>

#include "core/metrics/metric_list.h"
#include "ui/convert.h"
#include "ui/views/attention_heatmap_view.h"
#include "ui/views/metric_table_view.h"
#include "ui/views/offset_profile_view.h"

namespace posiscope::ui {
namespace {

bool has_maps(const core::Session& session)
{
    return session.maps != nullptr;
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
