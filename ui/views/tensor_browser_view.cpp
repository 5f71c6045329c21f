// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/tensor_browser_view.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QSpinBox>
#include <QSplitter>
#include <QStackedWidget>
#include <QToolButton>
#include <QTreeView>
#include <QVBoxLayout>

#include <cmath>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/format_table.h"
#include "core/checkpoint/remote_store.h"
#include "core/export/npy.h"
#include "core/export/tensors_used.h"
#include "ui/byte_text.h"
#include "ui/convert.h"
#include "ui/models/tensor_tree_model.h"
#include "ui/plot/chart_plot.h"
#include "ui/plot/ticks.h"
#include "ui/session_text.h"
#include "ui/theme.h"
#include "ui/widgets/elided_label.h"
#include "ui/widgets/roomy_delegate.h"

namespace posiscope::ui {
namespace {

constexpr std::uint64_t at_once_on_disk = 64'000'000; ///< bytes read without being asked
constexpr std::uint64_t at_once_over_network = 4'000'000;
constexpr std::uint64_t small_checkpoint = 1'000'000'000; ///< all of which may be hashed without being asked
constexpr int digest_delay_ms = 400;                      ///< while a slider moves, probes come and go
constexpr int work_delay_ms = 200;
constexpr std::int64_t most_points = 4096; ///< of a vector's curve
constexpr int most_rows_opened = 24;
const QString middle_dot = QStringLiteral(" \u00B7 ");

QString text_of(std::string_view text, std::size_t most = 400)
{
    return to_qstring(core::printable(text, most));
}

/// "encoder: learned absolute · 6 layers · 12 heads · d 384 · L ≤ 512"
QString stack_line(const core::Stack& stack)
{
    QStringList parts;
    parts.append(QStringLiteral("%1: %2").arg(text_of(stack.id), text_of(stack.scheme_label)));
    parts.append(stack.layers_present < stack.layers
                     ? TensorBrowserView::tr("%1 of %2 layers").arg(stack.layers_present).arg(stack.layers)
                 : stack.layers == 1 ? TensorBrowserView::tr("1 layer")
                                     : TensorBrowserView::tr("%1 layers").arg(stack.layers));
    parts.append(stack.heads == 1 ? TensorBrowserView::tr("1 head")
                                  : TensorBrowserView::tr("%1 heads").arg(stack.heads));
    parts.append(TensorBrowserView::tr("d %1").arg(stack.hidden_size));
    if (stack.length_limit) parts.append(TensorBrowserView::tr("L \u2264 %1").arg(*stack.length_limit));
    return parts.join(middle_dot);
}

QString format_label(const std::string& id)
{
    for (const core::CheckpointFormat& format : core::checkpoint_formats())
        if (format.id == id) return to_qstring(format.label);
    return to_qstring(id);
}

/// All digits that float32 values have: for the clipboard.
QString exact_number(double value)
{
    constexpr int digits = 9;
    return QString::number(value, 'g', digits);
}

/// The index along the leading axes that a matrix has, "[1, 2, :, :]".
QString slice_text(const core::Shape& shape, std::int64_t slice)
{
    QStringList parts;
    for (std::size_t axis = shape.size() - 2; axis-- > 0;) {
        parts.prepend(QString::number(slice % shape[axis]));
        slice /= shape[axis];
    }
    return QStringLiteral("[%1, :, :]").arg(parts.join(QStringLiteral(", ")));
}

/// What a cell of the picture stands for.
QString cells_text(const core::PicturePlan& plan)
{
    const auto count = [](std::int64_t n) { return shown_count(static_cast<qulonglong>(n)); };
    QString size =
        TensorBrowserView::tr("%1 \u00D7 %2").arg(count(plan.matrix.rows), count(plan.matrix.columns));
    if (plan.samples_rows)
        return plan.column_step == 1
                   ? TensorBrowserView::tr("%1, every %2th row").arg(size, count(plan.row_step))
                   : TensorBrowserView::tr("%1, every %2th row, means of %3 columns")
                         .arg(size, count(plan.row_step), count(plan.column_step));
    if (plan.row_step == 1 && plan.column_step == 1) return size;
    return TensorBrowserView::tr("%1, a cell is the mean of %2 \u00D7 %3 values")
        .arg(size, count(plan.row_step), count(plan.column_step));
}

ChartContent vector_chart(const core::TensorPicture& picture)
{
    ChartContent chart;
    ChartSeries series;
    const auto step = static_cast<double>(picture.plan.column_step);
    for (std::size_t n = 0; n < picture.values.size(); ++n)
        series.x.push_back(step * static_cast<double>(n) + 0.5 * (step - 1.0));
    series.y = picture.values;
    series.width = 1.0;
    constexpr std::size_t few = 64;
    series.points = picture.values.size() <= few;
    chart.series.push_back(std::move(series));
    chart.x_label = TensorBrowserView::tr("index");
    chart.y_label = picture.plan.column_step == 1
                        ? TensorBrowserView::tr("value")
                        : TensorBrowserView::tr("mean of %1 values").arg(picture.plan.column_step);
    chart.integer_x = true;
    chart.zero_line = true;
    return chart;
}

} // namespace

TensorBrowserView::TensorBrowserView(QWidget* parent)
    : AnalysisView(parent), m_scheme(new ElidedLabel(this)), m_file(new ElidedLabel(this)),
      m_digest(new ElidedLabel(this)), m_copy_digest(new QToolButton(this)),
      m_compute_digest(new QPushButton(tr("Compute"), this)), m_notes(new ElidedLabel(this)),
      m_filter_field(new QLineEdit(this)), m_tensors(new TensorTreeModel(this)),
      m_filter(new TensorTreeFilter(this)), m_tree(new QTreeView(this)), m_none(new QLabel(this)),
      m_tree_pages(new QStackedWidget(this)), m_splitter(new QSplitter(Qt::Horizontal, this)),
      m_details(new QStackedWidget(this)), m_name(new ElidedLabel(this)), m_facts(new ElidedLabel(this)),
      m_statistics(new QLabel(this)), m_read(new QPushButton(this)),
      m_save(new QPushButton(tr("Save as npy\u2026"), this)), m_copy(new QToolButton(this)),
      m_slice_row(new QWidget(this)), m_slice(new QSpinBox(this)), m_slices(new QLabel(this)),
      m_range(new QComboBox(this)), m_pages(new QStackedWidget(this)), m_matrix(new MatrixPlot(this)),
      m_chart(new ChartPlot(this)), m_message(new QLabel(this)), m_caption(new ElidedLabel(this)),
      m_work(new QWidget(this)), m_work_label(new QLabel(this)), m_work_bar(new QProgressBar(this)),
      m_stop(new QPushButton(tr("Stop"), this))
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(grid, 0, grid, grid / 2);
    column->setSpacing(grid / 2);
    column->addWidget(buildFacts());
    m_splitter->setChildrenCollapsible(false);
    m_splitter->setHandleWidth(grid);
    m_splitter->addWidget(buildTree());
    m_splitter->addWidget(buildDetails());
    m_splitter->setStretchFactor(0, 1);
    m_splitter->setStretchFactor(1, 1);
    column->addWidget(m_splitter, 1);

    m_digest_delay.setSingleShot(true);
    m_digest_delay.setInterval(digest_delay_ms);
    connect(&m_digest_delay, &QTimer::timeout, this, &TensorBrowserView::startDigest);
    m_work_delay.setSingleShot(true);
    m_work_delay.setInterval(work_delay_ms);
    connect(&m_work_delay, &QTimer::timeout, this, [this] {
        if (isBusy()) m_work->show();
    });
    for (TaskRunner* runner : {&m_statistics_runner, &m_picture_runner, &m_writer}) {
        connect(runner, &TaskRunner::started, this, &TensorBrowserView::showWork);
        connect(runner, &TaskRunner::finished, this, &TensorBrowserView::showWork);
        connect(runner, &TaskRunner::progressed, this,
                [this](const QString& stage, qulonglong done, qulonglong total) {
                    QString label = stage_label(stage);
                    if (stage == QLatin1String("download"))
                        label += tr(": %1").arg(shown_progress_bytes(done, total));
                    m_work_label->setText(label);
                    // One bar for the whole tensor; the bytes of its parts are told in words.
                    if (stage != QLatin1String("tensor") || total == 0) return;
                    m_work_bar->setRange(0, 1000);
                    m_work_bar->setValue(
                        static_cast<int>(1000.0 * static_cast<double>(done) / static_cast<double>(total)));
                });
    }
    connect(m_stop, &QPushButton::clicked, this, [this] {
        for (TaskRunner* runner : {&m_statistics_runner, &m_picture_runner, &m_writer})
            if (runner->isRunning()) runner->cancel();
    });
}

TensorBrowserView::~TensorBrowserView()
{
    m_work_delay.stop();
    m_digest_delay.stop();
}

QWidget* TensorBrowserView::buildFacts()
{
    auto* facts = new QWidget(this);
    m_scheme->setAccessibleName(tr("Model"));
    m_file->setAccessibleName(tr("Checkpoint"));
    m_digest->setAccessibleName(tr("SHA-256 of the tensors used"));
    m_notes->setAccessibleName(tr("Notes on the model"));
    m_copy_digest->setText(tr("Copy"));
    m_copy_digest->setAutoRaise(true);
    m_copy_digest->setFocusPolicy(Qt::StrongFocus);
    m_copy_digest->setAccessibleName(tr("Copy the SHA-256"));
    m_copy_digest->hide();
    m_compute_digest->setAccessibleName(tr("Compute the SHA-256 of the tensors used"));
    m_compute_digest->hide();
    for (ElidedLabel* label : {m_file, m_digest, m_notes})
        label->setForegroundRole(QPalette::PlaceholderText);
    auto* row = new QHBoxLayout;
    row->setSpacing(grid / 2);
    m_digest->setSizePolicy(QSizePolicy::Maximum,
                            QSizePolicy::Fixed); // the button stands behind its last word
    row->addWidget(m_digest);
    row->addWidget(m_copy_digest);
    row->addWidget(m_compute_digest);
    row->addStretch(1);
    auto* column = new QVBoxLayout(facts);
    column->setContentsMargins(2, 0, 0, 0);
    column->setSpacing(1);
    column->addWidget(m_scheme);
    column->addWidget(m_file);
    column->addLayout(row);
    column->addWidget(m_notes);
    connect(m_copy_digest, &QToolButton::clicked, this, [this] { copyText(m_digest_value); });
    connect(m_compute_digest, &QPushButton::clicked, this, &TensorBrowserView::startDigest);
    return facts;
}

QWidget* TensorBrowserView::buildTree()
{
    auto* side = new QWidget(this);
    m_filter_field->setPlaceholderText(tr("Filter names"));
    m_filter_field->setAccessibleName(tr("Filter of the tensors' names"));
    m_filter_field->setClearButtonEnabled(true);
    m_filter_field->installEventFilter(this);
    m_filter->setSourceModel(m_tensors);
    m_tree->setModel(m_filter);
    m_tree->setItemDelegate(new RoomyDelegate(m_tree));
    m_tree->setUniformRowHeights(true); // tens of thousands of rows stay quick
    m_tree->setAlternatingRowColors(true);
    m_tree->setFrameShape(QFrame::NoFrame);
    m_tree->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_tree->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_tree->setIndentation(2 * grid);
    m_tree->setFont(with_tabular_figures(m_tree->font()));
    m_tree->setAccessibleName(tr("Tensors"));
    m_tree->setContextMenuPolicy(Qt::CustomContextMenu);
    m_tree->setTextElideMode(Qt::ElideMiddle);
    QHeaderView* header = m_tree->header();
    header->setStretchLastSection(false);
    header->setSectionResizeMode(QHeaderView::ResizeToContents);
    header->setSectionResizeMode(TensorTreeModel::name_column, QHeaderView::Stretch);
    header->setSectionsMovable(false);
    header->setHighlightSections(false);
    auto* copy = new QAction(tr("&Copy"), this);
    copy->setShortcut(QKeySequence::Copy);
    copy->setShortcutContext(Qt::WidgetShortcut);
    connect(copy, &QAction::triggered, this, [this] { copyText(chosenText()); });
    m_tree->addAction(copy);

    m_none->setAlignment(Qt::AlignCenter);
    m_none->setWordWrap(true);
    m_none->setTextFormat(Qt::PlainText);
    m_tree_pages->addWidget(m_tree);
    m_tree_pages->addWidget(m_none);
    auto* column = new QVBoxLayout(side);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(grid / 2);
    column->addWidget(m_filter_field);
    column->addWidget(m_tree_pages, 1);
    side->setMinimumWidth(24 * grid);

    connect(m_filter_field, &QLineEdit::textChanged, this, &TensorBrowserView::applyFilter);
    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this,
            &TensorBrowserView::takeSelection);
    connect(m_tree, &QWidget::customContextMenuRequested, this, &TensorBrowserView::showMenu);
    return side;
}

QWidget* TensorBrowserView::buildDetails()
{
    auto* page = new QWidget(this);
    auto* hint = new QLabel(tr("Choose a tensor to see its numbers and its picture."), this);
    hint->setAlignment(Qt::AlignCenter);
    hint->setWordWrap(true);
    hint->setForegroundRole(QPalette::PlaceholderText);

    QFont bold = m_name->font();
    bold.setBold(true);
    m_name->setFont(bold);
    m_name->setAccessibleName(tr("Chosen tensor"));
    m_facts->setForegroundRole(QPalette::PlaceholderText);
    m_facts->setAccessibleName(tr("Type, shape and size"));
    m_statistics->setTextFormat(Qt::RichText);
    m_statistics->setFont(with_tabular_figures(m_statistics->font()));
    m_statistics->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_statistics->setAccessibleName(tr("Statistics"));
    m_statistics->setWordWrap(true);
    m_statistics->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Minimum);
    m_save->setToolTip(tr("Write the tensor as float32 for NumPy (Ctrl+E)"));
    m_copy->setText(tr("Copy"));
    m_copy->setToolTip(tr("Copy name, type, shape and statistics (Ctrl+C in the tree)"));
    m_copy->setAccessibleName(tr("Copy facts and statistics"));
    m_copy->setAutoRaise(true);
    m_copy->setFocusPolicy(Qt::StrongFocus);
    m_range->addItem(tr("99 % of the values"), static_cast<int>(MatrixRange::most_values));
    m_range->addItem(tr("all values"), static_cast<int>(MatrixRange::all_values));
    m_range->setAccessibleName(tr("What the colours span"));
    m_range->setToolTip(tr("What the colours span: a few very large values make all others look like zero"));
    m_slice->setAccessibleName(tr("Which matrix of the tensor"));
    m_slice->setKeyboardTracking(false);
    auto* slice_layout = new QHBoxLayout(m_slice_row);
    slice_layout->setContentsMargins(0, 0, 0, 0);
    slice_layout->setSpacing(grid / 2);
    auto* slice_label = new QLabel(tr("Matrix"), m_slice_row);
    slice_label->setBuddy(m_slice);
    slice_layout->addWidget(slice_label);
    slice_layout->addWidget(m_slice);
    slice_layout->addWidget(m_slices);

    m_message->setAlignment(Qt::AlignCenter);
    m_message->setWordWrap(true);
    m_message->setTextFormat(Qt::PlainText);
    m_chart->setAccessibleName(tr("Values of the vector"));
    m_pages->addWidget(m_matrix);
    m_pages->addWidget(m_chart);
    m_pages->addWidget(m_message);
    m_caption->setForegroundRole(QPalette::PlaceholderText);
    m_caption->setFont(with_tabular_figures(m_caption->font()));
    m_caption->setAccessibleName(tr("What the picture shows"));

    m_work_bar->setTextVisible(false);
    m_work_bar->setFixedHeight(grid);
    m_work_bar->setAccessibleName(tr("Progress of reading"));
    m_stop->setAccessibleName(tr("Stop reading the tensor"));
    auto* work_row = new QHBoxLayout(m_work);
    work_row->setContentsMargins(0, 0, 0, 0);
    work_row->setSpacing(grid);
    work_row->addWidget(m_work_label);
    work_row->addWidget(m_work_bar, 1);
    work_row->addWidget(m_stop);
    m_work->hide();

    auto* tools = new QHBoxLayout;
    tools->setSpacing(grid);
    tools->addWidget(m_save);
    tools->addWidget(m_copy);
    tools->addStretch(1);
    tools->addWidget(m_slice_row);
    tools->addWidget(m_range);
    auto* column = new QVBoxLayout(page);
    column->setContentsMargins(grid / 2, 0, 0, 0);
    column->setSpacing(grid / 2);
    column->addWidget(m_name);
    column->addWidget(m_facts);
    column->addWidget(m_statistics);
    column->addWidget(m_read, 0, Qt::AlignLeft);
    column->addLayout(tools);
    column->addWidget(m_pages, 1);
    column->addWidget(m_caption);
    column->addWidget(m_work);
    m_details->addWidget(hint);
    m_details->addWidget(page);
    m_details->setMinimumWidth(30 * grid);

    connect(m_read, &QPushButton::clicked, this, &TensorBrowserView::readTensor);
    connect(m_save, &QPushButton::clicked, this, &TensorBrowserView::exportShown);
    connect(m_copy, &QToolButton::clicked, this, [this] { copyText(chosenText()); });
    connect(m_slice, &QSpinBox::valueChanged, this, [this] { startPicture(Wish::asked); });
    connect(m_range, &QComboBox::currentIndexChanged, this, [this] {
        if (m_matrix->picture().values.empty()) return;
        core::TensorPicture picture = m_matrix->picture();
        const ColorScale scale =
            matrix_color_scale(picture, static_cast<MatrixRange>(m_range->currentData().toInt()));
        QImage image = matrix_image(picture, scale);
        m_matrix->setPicture(std::move(picture), scale, std::move(image));
    });
    connect(m_matrix, &MatrixPlot::markChanged, this, &TensorBrowserView::showCaption);
    connect(m_chart, &ChartPlot::hovered, this, [this](const QPointF& place) {
        const auto& series = m_chart->chart().series;
        if (series.empty() || series[0].x.empty()) return;
        const double step = series[0].x.size() > 1 ? series[0].x[1] - series[0].x[0] : 1.0;
        const auto at = std::lround((m_chart->chartAt(place).x() - series[0].x[0]) / step);
        if (at < 0 || at >= static_cast<long>(series[0].x.size())) return;
        const auto index = static_cast<std::size_t>(at);
        m_chart->setMarks({}, series[0].x[index],
                          step > 1.0 ? tr("%1\u2013%2: %3")
                                           .arg(std::lround(series[0].x[index] - 0.5 * (step - 1.0)))
                                           .arg(std::lround(series[0].x[index] + 0.5 * (step - 1.0)))
                                           .arg(value_text(series[0].y[index]))
                                     : tr("index %1: %2")
                                           .arg(std::lround(series[0].x[index]))
                                           .arg(value_text(series[0].y[index])));
        m_chart->update();
    });
    connect(m_chart, &ChartPlot::left, this, [this] {
        m_chart->setMarks({});
        m_chart->update();
    });
    return m_details;
}

void TensorBrowserView::setSession(std::shared_ptr<const core::Session> session)
{
    if (!session || !session->model) return;
    const bool same_model = m_session && m_session->model == session->model;
    m_session = std::move(session);
    if (!same_model) takeModel();
    showNotes();
    wantDigest();
}

void TensorBrowserView::takeModel()
{
    const std::string before = m_chosen;
    m_checkpoint = m_session->model->checkpoint;
    m_statistics_runner.abandon();
    m_picture_runner.abandon();
    m_digest_runner.abandon(); // a file that is being written is still wanted
    m_digest_probe.reset();
    m_digest_value.clear();
    m_digest_fault.clear();
    m_saved.clear();
    m_chosen.clear();
    m_tensors->setCheckpoint(m_checkpoint);
    showModelFacts();
    applyFilter(m_filter_field->text());
    // The same tensor of another model, for looking at one after the other; at first the table of positions.
    std::string first = before;
    for (const core::Stack& stack : m_session->model->architecture.stacks)
        if (!m_tensors->indexOf(first).isValid()) first = stack.position_table;
    if (m_tensors->indexOf(first).isValid())
        choose(QString::fromStdString(first));
    else
        showTensor();
    Q_EMIT contextChanged();
}

void TensorBrowserView::showModelFacts()
{
    const core::OpenModel& model = *m_session->model;
    QStringList lines;
    for (const core::Stack& stack : model.architecture.stacks) lines.append(stack_line(stack));
    const QString family = text_of(model.architecture.family_label);
    m_scheme->setText(lines.isEmpty() ? family : family + middle_dot + lines.join(QStringLiteral("; ")));
    std::uint64_t numbers = 0;
    for (const core::TensorInfo& tensor : m_checkpoint->tensors())
        numbers += core::element_count(tensor.shape).value_or(0);
    const auto tensors = static_cast<qulonglong>(m_checkpoint->tensors().size());
    QStringList parts{format_label(m_checkpoint->format()), shown_bytes(m_checkpoint->file_size()),
                      tr("%1 read so far").arg(shown_bytes(m_checkpoint->bytes_read())),
                      (tensors == 1 ? tr("%1 tensor with %2 numbers") : tr("%1 tensors with %2 numbers"))
                          .arg(shown_count(tensors), shown_count(numbers))};
    if (!m_checkpoint->absent().empty()) {
        const auto absent = static_cast<qulonglong>(m_checkpoint->absent().size());
        parts.append(absent == 1 ? tr("1 that cannot be had")
                                 : tr("%1 that cannot be had").arg(shown_count(absent)));
    }
    m_file->setText(parts.join(middle_dot));
    m_scheme->setToolTip(family + QLatin1Char('\n') + lines.join(QLatin1Char('\n')) + QLatin1Char('\n') +
                         m_file->text());
    QString tip =
        text_of(m_checkpoint->location()) + QLatin1Char('\n') + text_of(m_checkpoint->weights_name());
    int told = 0;
    for (const auto& [name, why] : m_checkpoint->absent()) {
        constexpr int most_told = 12;
        if (++told > most_told) break;
        tip += QLatin1Char('\n') + tr("%1 %2").arg(text_of(name, 120), text_of(why, 200));
    }
    m_file->setToolTip(tip);
}

void TensorBrowserView::showNotes()
{
    const QStringList notes = session_warnings(*m_session);
    m_notes->setVisible(!m_is_small && !notes.isEmpty());
    m_notes->setText(notes.isEmpty()     ? QString()
                     : notes.size() == 1 ? tr("1 note: %1").arg(notes.first())
                                         : tr("%1 notes: %2").arg(notes.size()).arg(notes.first()));
    m_notes->setToolTip(notes.join(QStringLiteral("\n\n")));
}

void TensorBrowserView::applyFilter(const QString& text)
{
    m_is_filtering = true;
    m_filter->setText(text.trimmed());
    m_is_filtering = false;
    const bool is_empty = m_filter->rowCount() == 0;
    m_tree_pages->setCurrentIndex(is_empty ? 1 : 0);
    if (is_empty) {
        m_none->setText(m_tensors->rowCount() == 0
                            ? tr("The file holds no tensors.")
                            : tr("No tensor has \u201C%1\u201D in its name.").arg(text.trimmed()));
        return;
    }
    if (text.trimmed().isEmpty())
        expandFirst();
    else
        m_tree->expandAll();
    const QModelIndex index = m_filter->mapFromSource(m_tensors->indexOf(m_chosen));
    m_is_filtering = true;
    m_tree->setCurrentIndex(index); // none where the filter hides what is shown
    m_is_filtering = false;
    if (index.isValid()) m_tree->scrollTo(index);
}

/// Opens as many levels as make a list that can still be looked over.
void TensorBrowserView::expandFirst()
{
    m_tree->collapseAll();
    QList<QModelIndex> level{QModelIndex()};
    int rows = 0;
    for (int depth = 0; depth < 64; ++depth) {
        QList<QModelIndex> next;
        for (const QModelIndex& parent : level)
            for (int row = 0; row < m_filter->rowCount(parent); ++row)
                next.append(m_filter->index(row, 0, parent));
        rows += static_cast<int>(next.size());
        if (next.isEmpty() || rows > most_rows_opened) return;
        for (const QModelIndex& parent : level)
            if (parent.isValid()) m_tree->expand(parent);
        level = next;
    }
}

const core::TensorInfo* TensorBrowserView::info() const
{
    return m_checkpoint && !m_chosen.empty() ? m_checkpoint->find(m_chosen) : nullptr;
}

std::uint64_t TensorBrowserView::readAtOnce() const
{
    return core::is_remote_location(m_checkpoint->location()) ? at_once_over_network : at_once_on_disk;
}

void TensorBrowserView::choose(const QString& tensor)
{
    const QModelIndex source = m_tensors->indexOf(to_std(tensor));
    if (!source.isValid()) return;
    QModelIndex index = m_filter->mapFromSource(source);
    if (!index.isValid()) {
        m_filter_field->clear();
        index = m_filter->mapFromSource(source);
    }
    m_tree->setCurrentIndex(index);
    m_tree->scrollTo(index);
    takeSelection(); // also where it was current before
}

void TensorBrowserView::takeSelection()
{
    const QModelIndex index = m_filter->mapToSource(m_tree->currentIndex());
    const core::TensorInfo* tensor = m_tensors->tensorAt(index);
    // A group keeps what is shown.
    if (m_is_filtering || tensor == nullptr || tensor->name == m_chosen) return;
    m_chosen = tensor->name;
    showTensor();
    Q_EMIT contextChanged();
}

void TensorBrowserView::showTensor()
{
    m_statistics_runner.abandon();
    m_picture_runner.abandon();
    m_found.reset();
    m_statistics_fault.clear();
    m_picture_caption.clear();
    m_matrix->clear();
    m_chart->setChart({});
    const core::TensorInfo* tensor = info();
    m_details->setCurrentIndex(tensor == nullptr ? 0 : 1);
    if (tensor == nullptr) return;

    m_name->setText(text_of(tensor->name));
    m_name->setToolTip(
        tensor->stored_name.empty() || tensor->stored_name == tensor->name
            ? text_of(tensor->name)
            : tr("%1\nin the file: %2").arg(text_of(tensor->name), text_of(tensor->stored_name)));
    QStringList parts{to_qstring(core::dtype_name(tensor->dtype)), shown_shape(tensor->shape),
                      shown_bytes(stored_size(*tensor))};
    if (!tensor->stored_name.empty() && tensor->stored_name != tensor->name)
        parts.append(tr("in the file %1").arg(text_of(tensor->stored_name)));
    m_facts->setText(parts.join(middle_dot));

    const core::MatrixShape matrix = core::matrix_shape(*tensor);
    m_is_vector = matrix.slices == 1 && matrix.rows == 1;
    {
        const QSignalBlocker quiet_box(m_slice);
        m_slice->setRange(0, static_cast<int>(std::clamp<std::int64_t>(matrix.slices - 1, 0, 1'000'000'000)));
        m_slice->setValue(0);
    }
    m_slices->setText(tr("of %1").arg(shown_count(static_cast<qulonglong>(matrix.slices))));
    m_slice_row->setVisible(matrix.slices > 1);
    m_range->setVisible(!m_is_vector);
    const bool readable = tensor->fault.empty();
    m_save->setEnabled(readable);

    if (!readable) {
        m_read->hide();
        m_statistics_fault = tr("It cannot be read: it %1.").arg(text_of(tensor->fault, 300));
        showStatistics();
        showPictureMessage({});
        return;
    }
    const std::uint64_t bytes = stored_size(*tensor);
    if (bytes == 0) {
        m_read->hide();
        showStatistics();
        showPictureMessage(tr("It has no elements."));
        return;
    }
    const bool at_once = bytes <= readAtOnce();
    m_read->setText(core::is_remote_location(m_checkpoint->location())
                        ? tr("Fetch %1 and count").arg(shown_bytes(bytes))
                        : tr("Read %1 and count").arg(shown_bytes(bytes)));
    m_read->setVisible(!at_once);
    showStatistics();
    if (at_once) startStatistics();
    startPicture(Wish::passing);
}

/// The button: all that was too much to be read without being asked.
void TensorBrowserView::readTensor()
{
    m_read->hide();
    if (!m_found && !m_statistics_runner.isRunning()) startStatistics();
    const bool has_picture = m_pages->currentWidget() != m_message;
    if (!has_picture && !m_picture_runner.isRunning()) startPicture(Wish::asked);
}

void TensorBrowserView::startStatistics()
{
    m_statistics_runner.start<core::TensorStatistics>(
        [checkpoint = m_checkpoint, name = m_chosen](const core::RunContext& ctx) {
            return core::tensor_statistics(*checkpoint, name, ctx);
        },
        [this](core::Result<core::TensorStatistics> result) {
            if (result) {
                m_found = *result;
                m_read->hide();
            } else {
                m_statistics_fault = result.error().code == core::ErrorCode::cancelled
                                         ? tr("Stopped before all values were read.")
                                         : sentence_for(result.error());
                m_read->show();
            }
            showStatistics();
            showModelFacts();
        });
    m_statistics_fault.clear();
    showStatistics();
}

void TensorBrowserView::startPicture(Wish wish)
{
    const core::TensorInfo* tensor = info();
    if (tensor == nullptr || !tensor->fault.empty()) return;
    core::PictureOptions options;
    options.slice = m_slice->value();
    if (m_is_vector) options.most_columns = most_points;
    const auto plan = core::plan_picture(*m_checkpoint, m_chosen, options);
    if (!plan) {
        m_picture_runner.abandon();
        showPictureMessage(sentence_for(plan.error()));
        return;
    }
    if (plan->bytes > readAtOnce() && wish == Wish::passing) {
        m_picture_runner.abandon();
        showPictureMessage(tr("A picture needs %1 of the file. It is drawn when the button above is pressed.")
                               .arg(shown_bytes(plan->bytes)));
        m_read->show();
        return;
    }
    const auto range = static_cast<MatrixRange>(m_range->currentData().toInt());
    m_picture_runner.start<Drawn>(
        [checkpoint = m_checkpoint, name = m_chosen, options,
         range](const core::RunContext& ctx) -> core::Result<Drawn> {
            auto picture = core::tensor_picture(*checkpoint, name, options, ctx);
            if (!picture) return picture.error();
            Drawn drawn{*std::move(picture), {}, {}};
            drawn.scale = matrix_color_scale(drawn.picture, range);
            drawn.image = matrix_image(drawn.picture, drawn.scale);
            return drawn;
        },
        [this](core::Result<Drawn> result) {
            if (result) {
                showPicture(*std::move(result));
            } else if (result.error().code == core::ErrorCode::cancelled) {
                showPictureMessage(tr("Stopped before the picture was drawn."));
                m_read->show();
            } else {
                showPictureMessage(sentence_for(result.error()));
            }
            showModelFacts();
        });
    if (m_pages->currentWidget() == m_message) showPictureMessage({});
}

void TensorBrowserView::showStatistics()
{
    if (!m_found) {
        const QString text = m_statistics_runner.isRunning() ? tr("Counting\u2026") : m_statistics_fault;
        m_statistics->setText(text.toHtmlEscaped());
        m_statistics->setVisible(!m_statistics->text().isEmpty());
        return;
    }
    const core::TensorStatistics& found = *m_found;
    const auto cell = [](const QString& name, const QString& value) {
        return QStringLiteral(
                   "<td>%1&nbsp;</td><td align=\"right\"><b>%2</b></td><td>&nbsp;&nbsp;&nbsp;</td>")
            .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    };
    const auto value = [](double number) {
        return std::isnan(number) ? QStringLiteral("\u2013") : value_text(number);
    };
    m_statistics->setText(QStringLiteral("<table cellspacing=\"1\"><tr>%1%2%3</tr><tr>%4%5%6</tr></table>")
                              .arg(cell(tr("min"), value(found.least)), cell(tr("mean"), value(found.mean)),
                                   cell(tr("NaN"), shown_count(found.nan_count)),
                                   cell(tr("max"), value(found.most)),
                                   cell(tr("sd"), value(found.standard_deviation)),
                                   cell(tr("infinite"), shown_count(found.infinite_count))));
    m_statistics->show();
}

void TensorBrowserView::showPicture(Drawn drawn)
{
    const core::TensorInfo* tensor = info();
    if (tensor == nullptr) return;
    m_picture_caption = cells_text(drawn.picture.plan);
    if (tensor->shape.size() > 2)
        m_picture_caption = slice_text(tensor->shape, m_slice->value()) + middle_dot + m_picture_caption;
    if (m_is_vector) {
        if (drawn.picture.values.size() == 1) {
            showPictureMessage(tr("A single value: %1").arg(value_text(drawn.picture.values.front())));
            return;
        }
        m_picture_caption.clear();
        m_chart->setChart(vector_chart(drawn.picture));
        m_pages->setCurrentWidget(m_chart);
    } else {
        m_matrix->setPicture(std::move(drawn.picture), drawn.scale, std::move(drawn.image));
        m_pages->setCurrentWidget(m_matrix);
    }
    showCaption();
}

void TensorBrowserView::showPictureMessage(const QString& sentence)
{
    m_picture_caption.clear();
    m_message->setText(sentence);
    m_pages->setCurrentWidget(m_message);
    showCaption();
}

void TensorBrowserView::showCaption()
{
    const QString readout = m_pages->currentWidget() == m_matrix ? m_matrix->readout() : QString();
    QString text = readout.isEmpty() ? m_picture_caption : readout;
    if (readout.isEmpty() && !m_saved.isEmpty())
        text = text.isEmpty() ? tr("written to %1").arg(m_saved)
                              : text + middle_dot + tr("written to %1").arg(m_saved);
    m_caption->setText(text);
}

bool TensorBrowserView::isBusy() const
{
    return m_statistics_runner.isRunning() || m_picture_runner.isRunning() || m_writer.isRunning();
}

void TensorBrowserView::showWork()
{
    if (!isBusy()) {
        m_work_delay.stop();
        m_work->hide();
        return;
    }
    if (m_work->isVisibleTo(this) || m_work_delay.isActive()) return;
    m_work_label->setText(m_writer.isRunning() ? tr("Writing the tensor") : tr("Reading the tensor"));
    m_work_bar->setRange(0, 0);
    m_work_delay.start();
}

QString TensorBrowserView::chosenText() const
{
    const core::TensorInfo* tensor = info();
    if (tensor == nullptr) return {};
    QStringList sizes;
    for (const std::int64_t size : tensor->shape) sizes.append(QString::number(size));
    QStringList lines{QStringLiteral("name\t") + text_of(tensor->name)};
    if (!tensor->stored_name.empty() && tensor->stored_name != tensor->name)
        lines.append(QStringLiteral("name in file\t") + text_of(tensor->stored_name));
    lines.append(QStringLiteral("type\t") + to_qstring(core::dtype_name(tensor->dtype)));
    lines.append(QStringLiteral("shape\t") + sizes.join(QStringLiteral(" x ")));
    if (m_found) {
        lines.append(QStringLiteral("min\t") + exact_number(m_found->least));
        lines.append(QStringLiteral("max\t") + exact_number(m_found->most));
        lines.append(QStringLiteral("mean\t") + exact_number(m_found->mean));
        lines.append(QStringLiteral("sd\t") + exact_number(m_found->standard_deviation));
        lines.append(QStringLiteral("nan\t") + QString::number(m_found->nan_count));
        lines.append(QStringLiteral("infinite\t") + QString::number(m_found->infinite_count));
    }
    return lines.join(QLatin1Char('\n')) + QLatin1Char('\n');
}

void TensorBrowserView::copyText(const QString& text)
{
    if (!text.isEmpty()) QApplication::clipboard()->setText(text);
}

void TensorBrowserView::showMenu(const QPoint& where)
{
    const QModelIndex index = m_tree->indexAt(where);
    const core::TensorInfo* tensor = m_tensors->tensorAt(m_filter->mapToSource(index));
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    if (tensor != nullptr) {
        menu->addAction(tr("&Copy name, shape and statistics"), this, [this] { copyText(chosenText()); });
        menu->addAction(tr("Copy &name"), this, [this, name = to_qstring(tensor->name)] { copyText(name); });
        menu->addAction(tr("&Save as npy\u2026"), this, &TensorBrowserView::exportShown)
            ->setEnabled(canExport());
        menu->addSeparator();
    }
    if (index.isValid() && m_filter->hasChildren(index.siblingAtColumn(0)))
        menu->addAction(tr("&Expand all below"), this,
                        [this, row = QPersistentModelIndex(index.siblingAtColumn(0))] {
                            m_tree->expandRecursively(row);
                        });
    menu->addAction(tr("C&ollapse all"), m_tree, &QTreeView::collapseAll);
    menu->popup(m_tree->viewport()->mapToGlobal(where));
}

bool TensorBrowserView::canExport() const
{
    const core::TensorInfo* tensor = info();
    return tensor != nullptr && tensor->fault.empty();
}

void TensorBrowserView::exportShown()
{
    if (!canExport()) return;
    auto* dialog = new QFileDialog(this, tr("Save the tensor"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setFileMode(QFileDialog::AnyFile);
    dialog->setNameFilter(tr("NumPy array (*.npy)"));
    dialog->setDefaultSuffix(QStringLiteral("npy"));
    QString name = text_of(m_chosen, 120);
    for (QChar& c : name)
        if (!c.isLetterOrNumber() && c != u'.' && c != u'-') c = u'_';
    dialog->selectFile(name + QStringLiteral(".npy"));
    connect(dialog, &QFileDialog::fileSelected, this, &TensorBrowserView::writeTo);
    dialog->open();
}

void TensorBrowserView::writeTo(const QString& path)
{
    if (!canExport()) return;
    m_saved.clear();
    m_writer.start<bool>(
        [checkpoint = m_checkpoint, name = m_chosen,
         file = to_std(path)](const core::RunContext& ctx) -> core::Result<bool> {
            if (auto written = core::write_tensor_npy(file, *checkpoint, name, ctx); !written)
                return written.error();
            return true;
        },
        [this, path](core::Result<bool> result) {
            if (result)
                m_saved = path;
            else if (result.error().code != core::ErrorCode::cancelled)
                Q_EMIT failed(result.error(), tr("Writing %1").arg(path));
            showCaption();
            showModelFacts();
        });
}

/// The digest follows the probe, but not each of a slider's: a little later, and only where it is seen.
void TensorBrowserView::wantDigest()
{
    const auto& probe = m_session->probe;
    if (probe == nullptr || probe != m_digest_probe) {
        m_digest_runner.abandon();
        m_digest_probe.reset();
        m_digest_value.clear();
        m_digest_fault.clear();
    }
    showDigest();
    if (probe == nullptr || probe == m_digest_probe || !isVisible()) return;
    const bool is_cheap = probe->options.layer == 0 || m_checkpoint->file_size() <= small_checkpoint;
    m_compute_digest->setVisible(!is_cheap);
    if (is_cheap) m_digest_delay.start();
}

void TensorBrowserView::startDigest()
{
    if (!m_session || !m_session->probe) return;
    m_compute_digest->hide();
    m_digest_probe = m_session->probe;
    using Digests = std::map<std::string, core::TensorDigest>;
    m_digest_runner.start<Digests>(
        [model = m_session->model, probe = m_session->probe](const core::RunContext& ctx) {
            return core::tensors_used(*model, *probe, ctx);
        },
        [this](core::Result<Digests> result) {
            if (result) {
                m_digest_value = QString::fromStdString(core::digest_of_all(*result));
                m_digest_tensors = result->size();
            } else {
                m_digest_fault = sentence_for(result.error());
            }
            showDigest();
            showModelFacts();
        });
    showDigest();
}

void TensorBrowserView::showDigest()
{
    m_copy_digest->setVisible(!m_digest_value.isEmpty());
    m_compute_digest->hide();
    QString text, tip;
    if (!m_digest_value.isEmpty()) {
        constexpr qsizetype shown_digits = 16;
        text = tr("SHA-256 of the %1 tensors used: %2\u2026")
                   .arg(m_digest_tensors)
                   .arg(m_digest_value.left(shown_digits));
        tip = m_digest_value + QLatin1Char('\n') + describe_picture(*m_session);
    } else if (!m_digest_fault.isEmpty()) {
        text = tr("SHA-256 of the tensors used: %1").arg(m_digest_fault);
    } else if (m_session->probe == nullptr) {
        text = tr("SHA-256 of the tensors used: none have been used yet");
    } else if (m_digest_runner.isRunning() || m_digest_delay.isActive()) {
        text = tr("SHA-256 of the tensors used: being computed\u2026");
    } else {
        text = tr("SHA-256 of the tensors used: not computed yet");
    }
    m_digest->setText(text);
    m_digest->setToolTip(tip);
}

QString TensorBrowserView::contextLine() const
{
    if (!m_checkpoint) return {};
    QString line = text_of(m_checkpoint->display_name());
    if (!m_chosen.empty()) line += middle_dot + text_of(m_chosen);
    return line;
}

void TensorBrowserView::setSharedCursor(SharedCursor*) {} // rows and columns of a tensor are no positions

QString TensorBrowserView::modelText() const
{
    return m_scheme->text() + QLatin1Char('\n') + m_file->text() +
           (m_notes->text().isEmpty() ? QString() : QLatin1Char('\n') + m_notes->text());
}

QString TensorBrowserView::tensorText() const
{
    return m_details->currentIndex() == 0 ? QString() : m_name->text() + QLatin1Char('\n') + m_facts->text();
}

QString TensorBrowserView::statisticsText() const
{
    return m_statistics->isHidden() ? QString() : m_statistics->text();
}

QString TensorBrowserView::captionText() const
{
    return m_pages->currentWidget() == m_message && !m_message->text().isEmpty() ? m_message->text()
                                                                                 : m_caption->text();
}

QString TensorBrowserView::digestText() const
{
    return m_digest->text();
}

void TensorBrowserView::saveChoices(QSettings& settings) const
{
    settings.setValue(QStringLiteral("tensor_range"), m_range->currentIndex());
}

void TensorBrowserView::restoreChoices(QSettings& settings)
{
    m_range->setCurrentIndex(std::clamp(settings.value(QStringLiteral("tensor_range"), 0).toInt(), 0, 1));
}

void TensorBrowserView::resizeEvent(QResizeEvent* event)
{
    // Side by side where both have room to be read.
    constexpr int least_width = 75 * grid, least_height = 60 * grid;
    const bool is_wide = width() >= least_width;
    const Qt::Orientation orientation = is_wide ? Qt::Horizontal : Qt::Vertical;
    if (!m_has_sizes || m_splitter->orientation() != orientation) {
        m_has_sizes = true;
        m_splitter->setOrientation(orientation);
        m_splitter->setSizes({470, 530}); // shares of the whole
    }
    // A small panel keeps what names the model; the rest is in tool tips and comes back with the room.
    m_is_small = !is_wide && height() < least_height;
    m_file->setVisible(!m_is_small);
    m_notes->setVisible(!m_is_small && !m_notes->text().isEmpty());
    AnalysisView::resizeEvent(event);
}

void TensorBrowserView::showEvent(QShowEvent* event)
{
    AnalysisView::showEvent(event);
    if (m_session) wantDigest();
}

bool TensorBrowserView::eventFilter(QObject* watched, QEvent* event)
{
    // From the field into the tree without a Tab, as in completions.
    if (watched == m_filter_field && event->type() == QEvent::KeyPress &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Down && m_filter->rowCount() > 0) {
        m_tree->setFocus();
        if (!m_tree->currentIndex().isValid()) m_tree->setCurrentIndex(m_filter->index(0, 0));
        return true;
    }
    return AnalysisView::eventFilter(watched, event);
}

} // namespace posiscope::ui
