// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/figure/figure_writer.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>

#include <QBuffer>
#include <QFile>
#include <QImageWriter>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>

#include "core/base/text.h"
#include "core/base/version.h"
#include "core/export/atomic_file.h"
#include "ui/figure/figure_layout.h"
#include "ui/figure/figure_provenance.h"
#include "ui/figure/painter_canvas.h"
#include "ui/figure/svg_canvas.h"

namespace posiscope::ui {
namespace {

constexpr double mm_per_inch = 25.4;
constexpr double points_per_inch = 72.0;
constexpr int pdf_resolution = 1200;
/// Largest picture in pixels: 400 million take 1.6 GB.
constexpr double most_pixels = 4e8;
constexpr const char* namespace_uri = "urn:posiscope:provenance:";

QString creator()
{
    return QStringLiteral("Posiscope %1").arg(QLatin1String(core::version));
}

core::Error invalid(const QString& message)
{
    return core::Error{core::ErrorCode::invalid_argument, message.toStdString(), "figure"};
}

/// Nothing where the options are fine.
core::Result<void> check(const FigureSpec& spec, const FigureOptions& options)
{
    const auto outside = [](double value, double least, double most) {
        return !(value >= least && value <= most);
    };
    if (outside(options.width_mm, least_figure_mm, largest_figure_mm))
        return invalid(QStringLiteral("width %1 mm: wanted %2 to %3 mm")
                           .arg(options.width_mm)
                           .arg(least_figure_mm)
                           .arg(largest_figure_mm));
    if (options.height_mm != 0.0 && outside(options.height_mm, least_figure_mm, largest_figure_mm))
        return invalid(QStringLiteral("height %1 mm: wanted %2 to %3 mm")
                           .arg(options.height_mm)
                           .arg(least_figure_mm)
                           .arg(largest_figure_mm));
    if (outside(options.font_pt, least_font_pt, largest_font_pt))
        return invalid(QStringLiteral("font size %1 pt: wanted %2 to %3 pt")
                           .arg(options.font_pt)
                           .arg(least_font_pt)
                           .arg(largest_font_pt));
    if (options.dpi < least_dpi || options.dpi > largest_dpi)
        return invalid(QStringLiteral("resolution %1 dpi: wanted %2 to %3")
                           .arg(options.dpi)
                           .arg(least_dpi)
                           .arg(largest_dpi));
    const auto* heatmap = std::get_if<HeatmapContent>(&spec.content);
    const auto* profile = std::get_if<ProfileContent>(&spec.content);
    const auto* chart = std::get_if<ChartContent>(&spec.content);
    const auto* table = std::get_if<TableContent>(&spec.content);
    if ((table && table->rows() == 0) || (heatmap && heatmap->map.length == 0) ||
        (profile && profile->curve.mean.empty()) || (chart && chart->empty()))
        return invalid(QStringLiteral("there is nothing to draw"));
    return {};
}

QString xml_escaped(const QString& text)
{
    return text.toHtmlEscaped();
}

/// XMP packet with title, program and provenance. Qt writes its own dates into the document information.
QByteArray xmp_packet(const FigureSpec& spec, const QByteArray& provenance_json)
{
    const QString provenance = xml_escaped(QString::fromUtf8(provenance_json));
    return QStringLiteral(
               "<?xpacket begin=\"\uFEFF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
               "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n"
               "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n"
               "<rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" "
               "xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\" "
               "xmlns:posiscope=\"%1\">\n"
               "<dc:format>application/pdf</dc:format>\n"
               "<dc:title><rdf:Alt><rdf:li xml:lang=\"x-default\">%2</rdf:li></rdf:Alt></dc:title>\n"
               "<xmp:CreatorTool>%3</xmp:CreatorTool>\n"
               "<pdf:Producer>%3</pdf:Producer>\n"
               "<posiscope:provenance>%4</posiscope:provenance>\n"
               "</rdf:Description>\n</rdf:RDF>\n</x:xmpmeta>\n<?xpacket end=\"w\"?>\n")
        .arg(QLatin1String(namespace_uri), xml_escaped(spec.title), creator(), provenance)
        .toUtf8();
}

/// Makes the page exactly `points` large: Qt rounds pages to whole points. The drawing keeps its place, which hangs
/// from the top of the page of `whole_height` points that Qt made; offsets in the table of objects are moved along.
void set_exact_page(QByteArray& pdf, const QSizeF& points, int whole_height)
{
    const qsizetype at = pdf.indexOf("/MediaBox [");
    const qsizetype end = pdf.indexOf(']', at);
    const qsizetype table_name = pdf.lastIndexOf("startxref\n");
    if (at < 0 || end < 0 || table_name < 0) return;
    const qsizetype table_at =
        pdf.mid(table_name + 10, pdf.indexOf('\n', table_name + 10) - table_name - 10).toLongLong();
    const QByteArray box = "/MediaBox [0 " + QByteArray::number(whole_height - points.height(), 'f', 4) +
                           ' ' + QByteArray::number(points.width(), 'f', 4) + ' ' +
                           QByteArray::number(whole_height) + ']';
    const qsizetype moved = box.size() - (end + 1 - at);

    constexpr qsizetype entry_size = 20;               // "OFFSET_10 GENERATION_5 n \n"
    qsizetype entry = pdf.indexOf('\n', table_at) + 1; // after "xref"
    entry = pdf.indexOf('\n', entry) + 1;              // after "0 COUNT"
    for (; entry + entry_size <= pdf.size() && pdf.at(entry) != 't'; entry += entry_size) {
        const qsizetype offset = pdf.mid(entry, 10).toLongLong();
        if (offset > at) pdf.replace(entry, 10, QByteArray::number(offset + moved).rightJustified(10, '0'));
    }
    pdf.replace(table_name + 10, QByteArray::number(table_at).size(), QByteArray::number(table_at + moved));
    pdf.replace(at, end + 1 - at, box);
}

core::Result<QByteArray> pdf_bytes(const FigureSpec& spec, const FigureOptions& options)
{
    const QSizeF points = figure_size_mm(spec, options) * points_per_inch / mm_per_inch;
    const QSizeF whole(std::ceil(points.width()), std::ceil(points.height()));
    QByteArray out;
    QBuffer buffer(&out);
    buffer.open(QIODevice::WriteOnly);
    {
        QPdfWriter writer(&buffer);
        writer.setTitle(spec.title);
        writer.setCreator(creator());
        writer.setResolution(pdf_resolution);
        writer.setPageSize(
            QPageSize(whole, QPageSize::Point, QStringLiteral("figure"), QPageSize::ExactMatch));
        writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        writer.setDocumentXmpMetadata(xmp_packet(spec, complete_provenance(spec, options)));
        QPainter painter;
        if (!painter.begin(&writer))
            return core::Error{core::ErrorCode::internal, "the PDF writer did not start", "figure"};
        painter.scale(pdf_resolution / points_per_inch, pdf_resolution / points_per_inch);
        PainterCanvas canvas(painter, figure_font(options), PainterTarget::vector);
        draw_figure(canvas, spec, options);
        painter.end();
    }
    set_exact_page(out, points, static_cast<int>(whole.height()));
    return out;
}

QByteArray svg_bytes(const FigureSpec& spec, const FigureOptions& options)
{
    SvgCanvas canvas(figure_size_mm(spec, options), figure_font(options), spec.title,
                     complete_provenance(spec, options));
    draw_figure(canvas, spec, options);
    return canvas.finish();
}

std::uint32_t crc32(const QByteArray& bytes)
{
    std::uint32_t crc = 0xFFFFFFFFu;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1u) ^ ((crc & 1u) ? 0xEDB88320u : 0u);
    }
    return ~crc;
}

QByteArray big_endian(std::uint32_t value)
{
    QByteArray out;
    for (const unsigned shift : {24u, 16u, 8u, 0u}) out += static_cast<char>((value >> shift) & 0xFFu);
    return out;
}

/// One tEXt chunk. Written by hand because Qt compresses longer texts (zTXt), which plain readers then miss.
QByteArray text_chunk(const QByteArray& keyword, const QByteArray& text)
{
    const QByteArray body = "tEXt" + keyword + '\0' + text;
    return big_endian(static_cast<std::uint32_t>(body.size() - 4)) + body + big_endian(crc32(body));
}

core::Result<QByteArray> png_bytes(const FigureSpec& spec, const FigureOptions& options)
{
    const QSizeF size = figure_size_mm(spec, options) * options.dpi / mm_per_inch;
    if (size.width() * size.height() > most_pixels)
        return invalid(
            QStringLiteral("a picture of %1 x %2 pixels is too large: take a lower resolution or PDF")
                .arg(std::lround(size.width()))
                .arg(std::lround(size.height())));
    QImage image = figure_picture(spec, options, options.dpi / mm_per_inch);
    if (image.isNull())
        return core::Error{core::ErrorCode::out_of_memory, "not enough memory for the picture", "figure"};
    const int per_metre = static_cast<int>(std::lround(options.dpi * 1000.0 / mm_per_inch));
    image.setDotsPerMeterX(per_metre);
    image.setDotsPerMeterY(per_metre);
    QByteArray out;
    QBuffer buffer(&out);
    buffer.open(QIODevice::WriteOnly);
    QImageWriter writer(&buffer, "png");
    if (!writer.write(image))
        return core::Error{core::ErrorCode::internal, writer.errorString().toStdString(), "PNG writer"};
    // After the signature (8 bytes) and IHDR (25 bytes).
    constexpr qsizetype after_header = 33;
    QByteArray chunks = text_chunk("Software", creator().toLatin1());
    if (!spec.title.isEmpty()) chunks += text_chunk("Title", spec.title.toLatin1());
    chunks += text_chunk("posiscope:provenance", complete_provenance(spec, options));
    return out.insert(after_header, chunks);
}

} // namespace

QImage figure_picture(const FigureSpec& spec, const FigureOptions& options, double pixels_per_mm)
{
    const QSizeF size = figure_size_mm(spec, options) * pixels_per_mm;
    QImage image(std::max(1, static_cast<int>(std::lround(size.width()))),
                 std::max(1, static_cast<int>(std::lround(size.height()))), QImage::Format_RGB32);
    if (image.isNull()) return image;
    image.fill(Qt::white);
    QPainter painter(&image);
    const double scale = pixels_per_mm * mm_per_inch / points_per_inch;
    painter.scale(scale, scale);
    PainterCanvas canvas(painter, figure_font(options), PainterTarget::raster);
    draw_figure(canvas, spec, options);
    return image;
}

core::Result<QByteArray> figure_bytes(const FigureSpec& spec, const FigureOptions& options,
                                      FigureFormat format)
{
    if (const core::Result<void> checked = check(spec, options); !checked) return checked.error();
    switch (format) {
    case FigureFormat::pdf: return pdf_bytes(spec, options);
    case FigureFormat::svg: return svg_bytes(spec, options);
    case FigureFormat::png: return png_bytes(spec, options);
    }
    return core::Error{core::ErrorCode::internal, "unknown figure format", "figure"};
}

core::Result<void> write_figure(const FigureSpec& spec, const FigureOptions& options, const QString& path)
{
    const std::optional<FigureFormat> format = figure_format_of(path);
    if (!format)
        return core::Error{core::ErrorCode::invalid_argument,
                           core::in_quotes(path.toStdString()) +
                               " has no known extension: a figure's name ends in .pdf, .svg or .png",
                           "figure"};
    const core::Result<QByteArray> bytes = figure_bytes(spec, options, *format);
    if (!bytes) return bytes.error();
    return core::write_atomically(
        std::filesystem::path(QFile::encodeName(path).toStdString()),
        std::string_view(bytes->constData(), static_cast<std::size_t>(bytes->size())));
}

} // namespace posiscope::ui
