// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/dialogs/export_dialog.h"

#include <cmath>
#include <memory>
#include <utility>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QCoreApplication>
#include <QDialogButtonBox>
#include <QDir>
#include <QDoubleSpinBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QFontComboBox>
#include <QFormLayout>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QStandardPaths>
#include <QVBoxLayout>

#include "ui/convert.h"
#include "ui/dialogs/figure_preview.h"
#include "ui/figure/figure_layout.h"
#include "ui/figure/figure_provenance.h"
#include "ui/figure/figure_writer.h"
#include "ui/widgets/error_banner.h"

namespace posiscope::ui {
namespace {

constexpr int preset_custom = 0; ///< first row of the presets' box
constexpr int colors_of_screen = 0;
constexpr double height_as_needed = 0.0;
constexpr const char* settings_group = "export_figure";

QString label_of(const char* text)
{
    return QCoreApplication::translate("posiscope::ui", text);
}

QString key(const char* name)
{
    return QString::fromLatin1(name);
}

QDoubleSpinBox* make_length_box(double least, double most, const QString& suffix)
{
    auto* box = new QDoubleSpinBox;
    box->setRange(least, most);
    box->setDecimals(1);
    box->setSuffix(suffix);
    box->setAlignment(Qt::AlignRight);
    box->setKeyboardTracking(false);
    return box;
}

} // namespace

ExportDialog::ExportDialog(FigureSpec spec, QWidget* parent)
    : QDialog(parent), m_spec(std::move(spec)), m_preview(new FigurePreview(this)),
      m_size_text(new QLabel(this)), m_banner(new ErrorBanner(this)), m_preset(new QComboBox(this)),
      m_width(make_length_box(least_figure_mm, largest_figure_mm, tr(" mm"))),
      m_height(make_length_box(height_as_needed, largest_figure_mm, tr(" mm"))),
      m_font(new QFontComboBox(this)),
      m_font_size(make_length_box(least_font_pt, largest_font_pt, tr(" pt"))), m_colors(new QComboBox(this)),
      m_title(new QCheckBox(tr("&Title above the figure"), this)), m_letter(new QLineEdit(this)),
      m_format(new QComboBox(this)), m_dpi(new QSpinBox(this)), m_buttons(new QDialogButtonBox(this))
{
    setWindowTitle(tr("Export figure"));
    m_size_text->setAlignment(Qt::AlignCenter);

    m_preset->addItem(tr("Own size"));
    for (const FigurePreset& preset : figure_presets()) m_preset->addItem(label_of(preset.label));
    m_height->setSpecialValueText(tr("as needed"));
    m_height->setToolTip(tr("0: as high as the figure needs at this width."));
    m_font->setFontFilters(QFontComboBox::ScalableFonts);
    m_font->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    m_font->setMinimumContentsLength(16);
    m_colors->addItem(tr("As on the screen"));
    for (const ColorMapRow& row : color_maps()) m_colors->addItem(label_of(row.label));
    m_title->setToolTip(tr("Figures of papers have captions instead."));
    m_title->setEnabled(!m_spec.title.isEmpty());
    m_letter->setMaxLength(2);
    m_letter->setPlaceholderText(tr("none"));
    m_letter->setToolTip(tr("\"a\" is drawn as (a) in the upper left corner."));
    for (const FigureFormatRow& row : figure_formats()) m_format->addItem(label_of(row.label));
    m_dpi->setRange(least_dpi, largest_dpi);
    m_dpi->setSingleStep(50);
    m_dpi->setSuffix(tr(" dpi"));
    m_dpi->setAlignment(Qt::AlignRight);
    m_dpi->setKeyboardTracking(false);

    auto* form = new QFormLayout;
    form->setLabelAlignment(Qt::AlignRight);
    form->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
    form->addRow(tr("&Preset"), m_preset);
    form->addRow(tr("&Width"), m_width);
    form->addRow(tr("&Height"), m_height);
    form->addRow(tr("&Font"), m_font);
    form->addRow(tr("Font &size"), m_font_size);
    const bool has_colors = std::holds_alternative<HeatmapContent>(m_spec.content);
    if (has_colors) form->addRow(tr("&Colours"), m_colors);
    m_colors->setVisible(has_colors);
    form->addRow(QString(), m_title);
    form->addRow(tr("&Letter"), m_letter);
    form->addRow(tr("Fo&rmat"), m_format);
    form->addRow(tr("Resol&ution"), m_dpi);

    auto* save = m_buttons->addButton(tr("Save\u2026"), QDialogButtonBox::AcceptRole);
    auto* copy_button = m_buttons->addButton(tr("Cop&y"), QDialogButtonBox::ActionRole);
    m_buttons->addButton(QDialogButtonBox::Cancel);
    save->setDefault(true);
    connect(save, &QPushButton::clicked, this, &ExportDialog::chooseFile);
    connect(copy_button, &QPushButton::clicked, this, &ExportDialog::copy);
    connect(m_buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);

    auto* left = new QVBoxLayout;
    left->addWidget(m_preview, 1);
    left->addWidget(m_size_text);
    auto* right = new QVBoxLayout;
    right->addLayout(form);
    right->addStretch(1);
    auto* middle = new QHBoxLayout;
    middle->setSpacing(16);
    middle->addLayout(left, 1);
    middle->addLayout(right);
    auto* all = new QVBoxLayout(this);
    all->setContentsMargins(16, 16, 16, 16);
    all->addWidget(m_banner);
    all->addLayout(middle, 1);
    all->addSpacing(8);
    all->addWidget(m_buttons);
    resize(860, 560);

    restoreChoice();
    connect(m_preset, &QComboBox::currentIndexChanged, this, &ExportDialog::takePreset);
    for (QDoubleSpinBox* box : {m_width, m_height, m_font_size})
        connect(box, &QDoubleSpinBox::valueChanged, this, [this] {
            // A size typed by hand is no preset any more.
            const QSignalBlocker block(m_preset);
            if (!m_setting_many) m_preset->setCurrentIndex(preset_custom);
            settingChanged();
        });
    connect(m_font, &QFontComboBox::currentFontChanged, this, &ExportDialog::settingChanged);
    connect(m_colors, &QComboBox::currentIndexChanged, this, &ExportDialog::settingChanged);
    connect(m_title, &QCheckBox::toggled, this, &ExportDialog::settingChanged);
    connect(m_letter, &QLineEdit::textChanged, this, &ExportDialog::settingChanged);
    connect(m_format, &QComboBox::currentIndexChanged, this, &ExportDialog::settingChanged);
    connect(m_dpi, &QSpinBox::valueChanged, this, &ExportDialog::settingChanged);
    settingChanged();
    startRecord();
}

/// Reads the tensors for the figure's record while the person chooses.
void ExportDialog::startRecord()
{
    if (!m_spec.read_tensors) return;
    m_recorder.start<TensorDigests>(m_spec.read_tensors, [this](core::Result<TensorDigests> digests) {
        // A checkpoint that cannot be read any more leaves its digests out; what was computed stands.
        if (digests) take_tensors(m_spec, *digests);
        m_spec.read_tensors = nullptr;
        if (!m_waiting) return;
        m_banner->clear();
        for (QAbstractButton* button : m_buttons->buttons()) button->setEnabled(true);
        std::exchange(m_waiting, nullptr)();
    });
}

void ExportDialog::whenRecorded(const QString& doing, std::function<void()> then)
{
    if (!m_recorder.isRunning()) {
        then();
        return;
    }
    m_waiting = std::move(then);
    for (QAbstractButton* button : m_buttons->buttons())
        button->setEnabled(m_buttons->buttonRole(button) == QDialogButtonBox::RejectRole);
    m_banner->showNotice(
        tr("%1 as soon as the weights have been read once more, for the record that the figure carries.")
            .arg(doing));
}

FigureOptions ExportDialog::options() const
{
    FigureOptions options;
    options.width_mm = m_width->value();
    // Below the least height only 0 has a meaning.
    options.height_mm = m_height->value() < least_figure_mm ? height_as_needed : m_height->value();
    // "Nimbus Sans [urw]": the foundry is the system's way to tell two apart, and no viewer knows it.
    options.font_family = m_font->currentFont().family().section(QStringLiteral(" ["), 0, 0);
    options.font_pt = m_font_size->value();
    if (m_colors->currentIndex() > colors_of_screen)
        options.color_map = color_maps()[static_cast<std::size_t>(m_colors->currentIndex() - 1)].map;
    options.title = m_title->isEnabled() && m_title->isChecked();
    options.letter = m_letter->text().trimmed();
    options.dpi = m_dpi->value();
    return options;
}

FigureFormat ExportDialog::format() const
{
    return figure_formats()[static_cast<std::size_t>(m_format->currentIndex())].format;
}

void ExportDialog::setOptions(const FigureOptions& options)
{
    m_setting_many = true;
    m_width->setValue(options.width_mm);
    m_height->setValue(options.height_mm);
    m_font->setCurrentFont(
        QFont(options.font_family.isEmpty() ? default_figure_font() : options.font_family));
    m_font_size->setValue(options.font_pt);
    m_colors->setCurrentIndex(options.color_map ? static_cast<int>(*options.color_map) + 1
                                                : colors_of_screen);
    m_title->setChecked(options.title);
    m_letter->setText(options.letter);
    m_dpi->setValue(options.dpi);
    int row = preset_custom;
    for (std::size_t n = 0; n < figure_presets().size(); ++n) {
        const FigurePreset& preset = figure_presets()[n];
        // The boxes hold one decimal.
        const auto same = [](double a, double b) { return std::abs(a - b) < 0.06; };
        if (same(preset.width_mm, options.width_mm) && same(preset.height_mm, options.height_mm) &&
            same(preset.font_pt, options.font_pt))
            row = static_cast<int>(n) + 1;
    }
    const QSignalBlocker block(m_preset);
    m_preset->setCurrentIndex(row);
    m_setting_many = false;
    settingChanged();
}

void ExportDialog::setFormat(FigureFormat format)
{
    for (std::size_t n = 0; n < figure_formats().size(); ++n)
        if (figure_formats()[n].format == format) m_format->setCurrentIndex(static_cast<int>(n));
}

void ExportDialog::takePreset(int row)
{
    if (row <= preset_custom) return;
    const FigurePreset& preset = figure_presets()[static_cast<std::size_t>(row - 1)];
    FigureOptions changed = options();
    changed.width_mm = preset.width_mm;
    changed.height_mm = preset.height_mm;
    changed.font_pt = preset.font_pt;
    setOptions(changed);
}

void ExportDialog::settingChanged()
{
    if (m_setting_many) return;
    m_banner->clear();
    const FigureOptions now = options();
    m_dpi->setEnabled(format() == FigureFormat::png);
    m_preview->setFigure(m_spec, now);
    const QSizeF size = figure_size_mm(m_spec, now);
    QString text = tr("%1 \u00D7 %2 mm").arg(size.width(), 0, 'f', 1).arg(size.height(), 0, 'f', 1);
    if (format() == FigureFormat::png) {
        const QSizeF pixels = size * now.dpi / 25.4;
        text +=
            tr(", %1 \u00D7 %2 pixels").arg(std::lround(pixels.width())).arg(std::lround(pixels.height()));
    }
    m_size_text->setText(text);
}

QString ExportDialog::bannerText() const
{
    return m_banner->isHidden() ? QString() : m_banner->sentence();
}

void ExportDialog::chooseFile()
{
    QSettings settings;
    settings.beginGroup(key(settings_group));
    QString folder = settings.value(key("folder")).toString();
    if (folder.isEmpty() || !QDir(folder).exists())
        folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    QStringList filters;
    for (const FigureFormatRow& row : figure_formats())
        filters.append(label_of(row.label) + QStringLiteral(" (*.") + to_qstring(row.id) + QLatin1Char(')'));
    const auto extension_of = [](qsizetype row) {
        return QLatin1Char('.') + to_qstring(figure_formats()[static_cast<std::size_t>(row)].id);
    };
    QString chosen = filters[m_format->currentIndex()];
    const QString name = m_spec.suggested_name.isEmpty() ? QStringLiteral("figure") : m_spec.suggested_name;
    const QString proposal = QDir(folder).filePath(name + extension_of(m_format->currentIndex()));
    QString path = QFileDialog::getSaveFileName(this, tr("Save figure"), proposal,
                                                filters.join(QStringLiteral(";;")), &chosen);
    if (path.isEmpty()) return;
    if (!figure_format_of(path)) {
        path += extension_of(std::max<qsizetype>(filters.indexOf(chosen), 0));
        // The system's dialog asked about another name.
        if (QFileInfo::exists(path)) {
            m_banner->showNotice(
                tr("%1 exists already: choose it, or another name, with its extension.").arg(path));
            return;
        }
    }
    settings.setValue(key("folder"), QFileInfo(path).absolutePath());
    saveTo(path);
}

void ExportDialog::saveTo(const QString& path)
{
    whenRecorded(tr("Saved"), [this, path] { write(path); });
}

void ExportDialog::write(const QString& path)
{
    if (const core::Result<void> written = write_figure(m_spec, options(), path); !written) {
        m_banner->showError(written.error(), tr("Saving the figure"), QFileInfo(path).absolutePath());
        return;
    }
    rememberChoice();
    accept();
}

void ExportDialog::copy()
{
    whenRecorded(tr("Copied"), [this] { putOnClipboard(); });
}

void ExportDialog::putOnClipboard()
{
    m_banner->clear();
    auto copied = std::make_unique<QMimeData>();
    for (const FigureFormat kind : {FigureFormat::png, FigureFormat::svg, FigureFormat::pdf}) {
        const core::Result<QByteArray> bytes = figure_bytes(m_spec, options(), kind);
        if (!bytes) {
            m_banner->showError(bytes.error(), tr("Copying the figure"));
            return;
        }
        if (kind == FigureFormat::png) copied->setImageData(QImage::fromData(*bytes, "PNG"));
        if (kind == FigureFormat::svg) copied->setData(QStringLiteral("image/svg+xml"), *bytes);
        if (kind == FigureFormat::pdf) copied->setData(QStringLiteral("application/pdf"), *bytes);
    }
    QGuiApplication::clipboard()->setMimeData(copied.release());
    rememberChoice();
    m_banner->showNotice(tr("The figure is on the clipboard, as PNG, SVG and PDF."));
}

void ExportDialog::restoreChoice()
{
    QSettings settings;
    settings.beginGroup(key(settings_group));
    const FigureOptions defaults;
    FigureOptions options;
    options.width_mm = settings.value(key("width_mm"), defaults.width_mm).toDouble();
    options.height_mm = settings.value(key("height_mm"), defaults.height_mm).toDouble();
    options.font_family = settings.value(key("font_family")).toString();
    options.font_pt = settings.value(key("font_pt"), defaults.font_pt).toDouble();
    options.color_map = find_color_map(to_std(settings.value(key("color_map")).toString()));
    options.title = settings.value(key("title"), false).toBool();
    options.letter = settings.value(key("letter")).toString();
    options.dpi = settings.value(key("dpi"), defaults.dpi).toInt();
    const QString format = settings.value(key("format"), QStringLiteral("pdf")).toString();
    setFormat(figure_format_of(QStringLiteral("x.") + format).value_or(FigureFormat::pdf));
    setOptions(options);
}

void ExportDialog::rememberChoice() const
{
    QSettings settings;
    settings.beginGroup(key(settings_group));
    const FigureOptions now = options();
    settings.setValue(key("width_mm"), now.width_mm);
    settings.setValue(key("height_mm"), now.height_mm);
    settings.setValue(key("font_family"), now.font_family);
    settings.setValue(key("font_pt"), now.font_pt);
    // A profile has no colour map: what was chosen for heatmaps stays.
    if (std::holds_alternative<HeatmapContent>(m_spec.content))
        settings.setValue(key("color_map"),
                          now.color_map ? to_qstring(color_map_id(*now.color_map)) : QString());
    settings.setValue(key("title"), m_title->isChecked());
    settings.setValue(key("letter"), now.letter);
    settings.setValue(key("dpi"), now.dpi);
    settings.setValue(key("format"),
                      to_qstring(figure_formats()[static_cast<std::size_t>(m_format->currentIndex())].id));
}

} // namespace posiscope::ui
