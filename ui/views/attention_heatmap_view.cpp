// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/attention_heatmap_view.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCoreApplication>
#include <QLabel>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

#include "ui/convert.h"
#include "ui/dialogs/export_dialog.h"
#include "ui/figure/view_figures.h"
#include "ui/plot/head_grid.h"
#include "ui/plot/heatmap_plot.h"
#include "ui/session_text.h"
#include "ui/shared_cursor.h"
#include "ui/widgets/compact_box.h"
#include "ui/widgets/flow_layout.h"

namespace posiscope::ui {
namespace {

constexpr const char* mean_id = "mean";
constexpr const char* spread_id = "spread";
/// Parts of the logits that the first layer's closed form gives.
constexpr std::array term_ids{"word_word", "word_position", "position_word", "position_position"};

/// Fills a box from a list of rows {id, label}.
template <class Rows>
void fill_from_rows(QComboBox* box, Rows rows)
{
    for (const auto& row : rows)
        box->addItem(QCoreApplication::translate("plots", row.label), to_qstring(row.id));
}

} // namespace

AttentionHeatmapView::AttentionHeatmapView(QWidget* parent)
    : AnalysisView(parent), m_choice_of_colors{default_colors(MapMeaning::magnitude),
                                               default_colors(MapMeaning::signed_difference),
                                               default_colors(MapMeaning::probability)},
      m_shown(new CompactBox(this)), m_scale(new CompactBox(this)), m_colors(new CompactBox(this)),
      m_profiles(new QCheckBox(tr("Profiles"), this)), m_heads(new QToolButton(this)),
      m_plot(new HeatmapPlot(this)), m_grid(new HeadGrid(this)), m_absent(new QLabel(this)),
      m_pages(new QStackedWidget(this))
{
    m_shown->addItem(tr("Mean over words"), QString::fromLatin1(mean_id));
    m_shown->addItem(tr("Spread over words"), QString::fromLatin1(spread_id));
    m_shown->insertSeparator(m_shown->count());
    for (const char* id : term_ids)
        m_shown->addItem(tr("Term: %1").arg(term_label(QString::fromLatin1(id))), QString::fromLatin1(id));
    m_shown->setAccessibleName(tr("What the heatmap shows"));
    m_shown->setToolTip(
        tr("The mean over the words, their spread (standard deviation between groups of words),\nor one "
           "of the terms that the mean logits are the sum of."));
    fill_from_rows(m_scale, scale_kinds());
    m_scale->setAccessibleName(tr("Colour scale"));
    m_scale->setToolTip(tr(
        "How values become colours. Percentiles clip the outermost 2 % at each end (above at least as many\n"
        "cells as a column has); clipped ends are marked on the colour bar."));
    fill_from_rows(m_colors, color_maps());
    m_colors->setAccessibleName(tr("Colour map"));
    m_colors->setToolTip(tr("Colour map. The last two are for values around zero."));
    m_profiles->setToolTip(
        tr("Means of the rows at the right and of the columns below;\nwhile a cell is marked, its own "
           "row and column."));
    m_profiles->setChecked(true);
    m_heads->setText(tr("Heads"));
    m_heads->setCheckable(true);
    m_heads->setFocusPolicy(Qt::StrongFocus);
    m_heads->setToolTip(tr("All heads side by side on one colour scale; a click picks one"));
    m_heads->setAccessibleName(tr("All heads side by side"));
    m_absent->setAlignment(Qt::AlignCenter);
    m_absent->setWordWrap(true);

    auto* tools = new FlowLayout;
    for (QComboBox* box : {m_shown, m_scale, m_colors}) tools->addWidget(box);
    tools->addWidget(m_profiles);
    tools->startTrailing();
    tools->addWidget(m_heads);
    m_pages->addWidget(m_plot);
    m_pages->addWidget(m_grid);
    m_pages->addWidget(m_absent);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    column->addLayout(tools);
    column->addWidget(m_pages, 1);
    takeColors();
    m_plot->setProfilesVisible(true);

    connect(m_shown, &QComboBox::currentIndexChanged, this, [this] {
        takeColors();
        Q_EMIT needsChanged();
        showChosen();
        Q_EMIT choiceMade(tr("what the heatmap shows"));
    });
    const auto take_choice = [this] {
        ColorDefaults& choice = m_choice_of_colors[static_cast<std::size_t>(meaning())];
        choice.map = color_maps()[static_cast<std::size_t>(m_colors->currentIndex())].map;
        choice.kind = scale_kinds()[static_cast<std::size_t>(m_scale->currentIndex())].kind;
        showChosen();
        Q_EMIT choiceMade(tr("colours"));
    };
    connect(m_scale, &QComboBox::currentIndexChanged, this, take_choice);
    connect(m_colors, &QComboBox::currentIndexChanged, this, take_choice);
    connect(m_profiles, &QCheckBox::toggled, this, [this](bool on) {
        m_plot->setProfilesVisible(on);
        Q_EMIT choiceMade(tr("profiles"));
    });
    connect(m_heads, &QToolButton::toggled, this, [this](bool on) {
        m_shown->setEnabled(!on);
        m_profiles->setEnabled(!on);
        takeColors();
        Q_EMIT needsChanged();
        showChosen();
        Q_EMIT choiceMade(tr("heads side by side"));
    });
    connect(m_grid, &HeadGrid::headClicked, this, [this](int head) {
        Q_EMIT headChosen(head);
        m_heads->setChecked(false); // the picked head in full
    });
}

QString AttentionHeatmapView::shownId() const
{
    return m_shown->currentData().toString();
}

bool AttentionHeatmapView::showsTerm() const
{
    return shownId() != QLatin1String(mean_id) && shownId() != QLatin1String(spread_id);
}

MapMeaning AttentionHeatmapView::meaning() const
{
    if (showsTerm() && !m_heads->isChecked()) return MapMeaning::signed_difference;
    return m_session ? meaning_of(m_session->display.quantity) : MapMeaning::magnitude;
}

ViewNeeds AttentionHeatmapView::needs() const
{
    ViewNeeds needs;
    needs.every_head = m_heads->isChecked();
    needs.terms = showsTerm() && !needs.every_head;
    return needs;
}

/// Each kind of map keeps its own colours: terms lie around zero, the others do not.
void AttentionHeatmapView::takeColors()
{
    const ColorDefaults& choice = m_choice_of_colors[static_cast<std::size_t>(meaning())];
    const QSignalBlocker block_scale(m_scale);
    const QSignalBlocker block_colors(m_colors);
    m_scale->setCurrentIndex(m_scale->findData(to_qstring(scale_kind_id(choice.kind))));
    m_colors->setCurrentIndex(m_colors->findData(to_qstring(color_map_id(choice.map))));
}

const core::PositionMap* AttentionHeatmapView::chosenMap() const
{
    if (!m_session || !m_session->maps) return nullptr;
    const core::DisplayMaps& maps = *m_session->maps;
    if (showsTerm()) {
        const auto found =
            std::find_if(maps.terms.begin(), maps.terms.end(),
                         [id = to_std(shownId())](const core::TermMap& term) { return term.id == id; });
        return found == maps.terms.end() ? nullptr : &found->map;
    }
    const core::PositionMap& map = shownId() == QLatin1String(spread_id) ? maps.spread : maps.mean;
    return map.length == 0 ? nullptr : &map;
}

QString AttentionHeatmapView::quantityName() const
{
    if (showsTerm()) return tr("%1 part of the logits").arg(term_label(shownId()));
    const QString quantity = quantity_axis_label(m_session->display.quantity);
    return shownId() == QLatin1String(spread_id) ? tr("%1, sd over groups of words").arg(quantity) : quantity;
}

void AttentionHeatmapView::setSession(std::shared_ptr<const core::Session> session)
{
    const bool same_maps = m_session && session && m_session->maps == session->maps;
    m_session = std::move(session);
    if (same_maps) return;
    takeColors();
    showChosen();
}

void AttentionHeatmapView::showChosen()
{
    if (m_heads->isChecked())
        showHeads();
    else
        showMap();
}

QString AttentionHeatmapView::quantityOfGrid() const
{
    return quantity_axis_label(m_session->display.quantity);
}

/// Scales and pictures of many heads take longer than a frame: they are made by a task.
void AttentionHeatmapView::showHeads()
{
    if (!m_session || !m_session->maps || m_session->maps->heads.empty()) return; // still to come
    const ColorDefaults choice = m_choice_of_colors[static_cast<std::size_t>(meaning())];
    m_picture_runner.start<HeadPictures>(
        [maps = m_session->maps, choice](const core::RunContext&) -> core::Result<HeadPictures> {
            return make_head_pictures(maps->heads, choice.map, choice.kind);
        },
        [this, head = m_session->display.head,
         label = quantityOfGrid()](core::Result<HeadPictures> pictures) {
            if (!pictures) {
                Q_EMIT failed(pictures.error(), tr("Drawing the heads"));
                return;
            }
            m_grid->setPictures(*pictures, label);
            m_grid->setSelectedHead(head);
            if (!m_heads->isChecked()) return;
            m_pages->setCurrentWidget(m_grid);
            tellContext();
        });
}

void AttentionHeatmapView::showMap()
{
    const core::PositionMap* map = chosenMap();
    if (map == nullptr) {
        if (m_session && m_session->maps) {
            const bool still_to_come = showsTerm() && !m_session->probe->options.terms;
            // The picture stays until the terms are there.
            if (still_to_come) return;
            m_absent->setText(showsTerm()
                                  ? tr("The terms belong to the closed form of the first layer; this map was "
                                       "computed by a %1.")
                                        .arg(way_label(m_session->probe->way))
                                  : tr("The spread over words needs at least two words."));
            m_pages->setCurrentWidget(m_absent);
            tellContext();
        }
        return;
    }
    const ColorDefaults& choice = m_choice_of_colors[static_cast<std::size_t>(meaning())];
    m_plot->setMap(*map, make_color_scale(*map, choice.map, choice.kind), quantityName());
    m_pages->setCurrentWidget(m_plot);
    tellContext();
    showCursor();
}

/// What is on screen, which lags behind the choices while maps are computed.
QString AttentionHeatmapView::contextLine() const
{
    return m_context_line;
}

void AttentionHeatmapView::tellContext()
{
    m_context_line = m_session ? describe_picture(*m_session) : QString();
    if (m_session && m_pages->currentWidget() == m_grid) {
        const std::int64_t heads = m_session->probe->heads;
        m_context_line.replace(head_label(m_session->display.head, heads), tr("all %1 heads").arg(heads));
    } else if (shownId() != QLatin1String(mean_id)) {
        m_context_line.prepend(m_shown->currentText().toLower() + QStringLiteral(" \u00b7 "));
    }
    Q_EMIT contextChanged();
}

void AttentionHeatmapView::setSharedCursor(SharedCursor* cursor)
{
    m_cursor = cursor;
    connect(cursor, &SharedCursor::changed, this, &AttentionHeatmapView::showCursor);
    connect(cursor, &SharedCursor::zoomed, this,
            [this](int first, int last) { m_plot->setPositionRange(first, last); });
    connect(m_plot, &HeatmapPlot::cellHovered, cursor,
            [cursor](int query, int key) { cursor->hover(MarkedPlace::cell(query, key)); });
    connect(m_plot, &HeatmapPlot::cellLeft, cursor, &SharedCursor::leave);
    connect(m_plot, &HeatmapPlot::cellClicked, cursor,
            [cursor](int query, int key) { cursor->togglePin(MarkedPlace::cell(query, key)); });
    connect(m_plot, &HeatmapPlot::positionRangeChanged, cursor, &SharedCursor::zoom);
}

void AttentionHeatmapView::showCursor()
{
    if (m_cursor == nullptr) return;
    const auto& place = m_cursor->place();
    if (place && place->isCell() && m_plot->valueAt(*place->query, *place->key))
        m_plot->setMarkedCell(QPoint(*place->key, *place->query));
    else
        m_plot->setMarkedCell(std::nullopt);
}

FigureSpec AttentionHeatmapView::figure() const
{
    HeatmapContent content;
    content.map = m_plot->map();
    content.scale = m_plot->colorScale();
    content.quantity_label = quantityName();
    content.first = m_plot->firstShown();
    content.last = m_plot->lastShown();
    const bool is_mean = shownId() == QLatin1String(mean_id);
    FigureSpec spec =
        attention_heatmap_figure(*m_session, std::move(content), is_mean ? QString() : shownId());
    spec.title = contextLine(); // with the term or the spread
    return spec;
}

bool AttentionHeatmapView::canExport() const
{
    return !m_heads->isChecked() && chosenMap() != nullptr;
}

void AttentionHeatmapView::exportShown()
{
    auto* dialog = new ExportDialog(figure(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
}

QVariantMap AttentionHeatmapView::choices() const
{
    QVariantMap choices{{QStringLiteral("heatmap_profiles"), m_profiles->isChecked()},
                        {QStringLiteral("heatmap_shown"), shownId()},
                        {QStringLiteral("heatmap_heads"), m_heads->isChecked()}};
    for (std::size_t k = 0; k < m_choice_of_colors.size(); ++k) {
        choices.insert(QStringLiteral("heatmap_scale%1").arg(k),
                       to_qstring(scale_kind_id(m_choice_of_colors[k].kind)));
        choices.insert(QStringLiteral("heatmap_colors%1").arg(k),
                       to_qstring(color_map_id(m_choice_of_colors[k].map)));
    }
    return choices;
}

void AttentionHeatmapView::setChoices(const QVariantMap& choices)
{
    for (std::size_t k = 0; k < m_choice_of_colors.size(); ++k) {
        const std::string scale = to_std(choices.value(QStringLiteral("heatmap_scale%1").arg(k)).toString());
        const std::string colors =
            to_std(choices.value(QStringLiteral("heatmap_colors%1").arg(k)).toString());
        if (const auto kind = find_scale_kind(scale)) m_choice_of_colors[k].kind = *kind;
        if (const auto map = find_color_map(colors)) m_choice_of_colors[k].map = *map;
    }
    m_profiles->setChecked(
        choices.value(QStringLiteral("heatmap_profiles"), m_profiles->isChecked()).toBool());
    const int shown = m_shown->findData(choices.value(QStringLiteral("heatmap_shown"), shownId()));
    if (shown >= 0) m_shown->setCurrentIndex(shown);
    m_heads->setChecked(choices.value(QStringLiteral("heatmap_heads"), m_heads->isChecked()).toBool());
    takeColors();
    showChosen();
}

} // namespace posiscope::ui
