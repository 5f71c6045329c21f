// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/convert.h"

#include <QCoreApplication>
#include <QFileInfo>

#include <algorithm>
#include <cmath>

#include "core/checkpoint/file_store.h"
#include "core/checkpoint/remote_store.h"
#include "ui/byte_text.h"

namespace posiscope::ui {
namespace {

QString translated(const char* text)
{
    return QCoreApplication::translate("posiscope", text);
}

QString with_true_minus(QString text)
{
    return text.replace(u'-', QChar(0x2212));
}

} // namespace

QStringList to_qstrings(const std::vector<std::string>& texts)
{
    QStringList out;
    out.reserve(static_cast<qsizetype>(texts.size()));
    for (const std::string& text : texts) out.append(to_qstring(text));
    return out;
}

QString sentence_for(const core::Error& error)
{
    QString text = to_qstring(error.message).trimmed();
    if (text.isEmpty()) text = translated("Something went wrong");
    text[0] = text[0].toUpper();
    if (!text.endsWith(u'.') && !text.endsWith(u'?') && !text.endsWith(u'!')) text += u'.';
    return text;
}

bool is_gone(const QString& location)
{
    const std::string text = to_std(location);
    return !location.isEmpty() && !text.starts_with(core::sample_prefix) && !core::is_remote_location(text) &&
           !QFileInfo::exists(location);
}

QString advice_for(core::ErrorCode code, const QString& location)
{
    switch (code) {
    case core::ErrorCode::not_found:
        // Of a file that is there, the message tells what it lacks.
        return is_gone(location) ? translated("Check that the file or folder is still there.") : QString();
    case core::ErrorCode::unreadable: return translated("Check the file's permissions, or open it again.");
    case core::ErrorCode::unsupported_format:
        return translated("Open a folder with config.json and model.safetensors, or a .safetensors file.");
    case core::ErrorCode::corrupt_file: return translated("Fetch or save the file again.");
    case core::ErrorCode::unsupported_model: return {};
    case core::ErrorCode::shape_mismatch:
        return translated("The config and the weights may belong to different models.");
    case core::ErrorCode::out_of_memory: return translated("Choose a smaller length or fewer words.");
    case core::ErrorCode::internal:
        return translated("This is a fault of the program: please report it with the details.");
    case core::ErrorCode::invalid_argument:
    case core::ErrorCode::numeric_failure:
    case core::ErrorCode::cancelled: return {};
    }
    return {};
}

QString stage_label(const QString& stage)
{
    if (stage == QLatin1String("bootstrap")) return translated("Standard errors");
    if (stage == QLatin1String("metrics")) return translated("Metrics");
    if (stage == QLatin1String("probe")) return translated("Probe");
    if (stage == QLatin1String("open")) return translated("Opening");
    if (stage == QLatin1String("maps")) return translated("Maps");
    if (stage == QLatin1String("download")) return translated("Reading over the network");
    if (stage == QLatin1String("tsne")) return translated("t-SNE");
    if (stage == QLatin1String("tensor")) return translated("Reading the tensor");
    return translated("Working");
}

QString stage_label(const QString& stage, qulonglong done, qulonglong total)
{
    QString label = stage_label(stage);
    if (stage == QLatin1String("download"))
        label += translated(": %1").arg(shown_progress_bytes(done, total));
    return label;
}

QString shown_number(double value, int decimals)
{
    if (!std::isfinite(value)) return QStringLiteral("\u2013");
    QString text = QString::number(value, 'f', decimals);
    // "-0.00" says no more than "0.00".
    if (text.startsWith(u'-') &&
        std::all_of(text.cbegin() + 1, text.cend(), [](QChar c) { return c == u'0' || c == u'.'; }))
        text.remove(0, 1);
    return with_true_minus(text);
}

QString shown_value(double value)
{
    if (std::isnan(value)) return QStringLiteral("\u2013");
    return with_true_minus(QString::number(value, 'g', 4));
}

QString shown_error(double error)
{
    if (std::isnan(error)) return QStringLiteral("\u2013");
    return QString::number(error, 'g', 2);
}

QString shown_offset(int offset)
{
    if (offset == 0) return QStringLiteral("0");
    return with_true_minus(offset > 0 ? QStringLiteral("+%1").arg(offset) : QString::number(offset));
}

} // namespace posiscope::ui
