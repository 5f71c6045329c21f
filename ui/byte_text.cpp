// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/byte_text.h"

#include <array>

#include <QCoreApplication>

namespace posiscope::ui {
namespace {

struct Unit {
    const char* name;
    double bytes;
};
constexpr std::array units{Unit{"kB", 1e3}, Unit{"MB", 1e6}, Unit{"GB", 1e9}, Unit{"TB", 1e12}};

const Unit& unit_for(qulonglong bytes)
{
    std::size_t n = 0;
    // 999.7 kB would be shown as 1000 kB.
    while (n + 1 < units.size() && static_cast<double>(bytes) >= 0.9995 * units[n + 1].bytes) ++n;
    return units[n];
}

QString in_unit(qulonglong bytes, const Unit& unit)
{
    const double value = static_cast<double>(bytes) / unit.bytes;
    return QString::number(value, 'f', value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

} // namespace

QString shown_bytes(qulonglong bytes)
{
    if (bytes < 1000)
        return bytes == 1 ? QCoreApplication::translate("posiscope", "1 byte")
                          : QCoreApplication::translate("posiscope", "%1 bytes").arg(bytes);
    const Unit& unit = unit_for(bytes);
    return in_unit(bytes, unit) + QChar(0x00A0) + QLatin1String(unit.name);
}

QString shown_progress_bytes(qulonglong done, qulonglong total)
{
    if (total == 0) return shown_bytes(done);
    if (total < 1000)
        return QCoreApplication::translate("posiscope", "%1 of %2").arg(done).arg(shown_bytes(total));
    return QCoreApplication::translate("posiscope", "%1 of %2")
        .arg(in_unit(done, unit_for(total)), shown_bytes(total));
}

QString shown_count(qulonglong count)
{
    QString text = QString::number(count);
    // Four digits stay together: "1024" needs no help.
    if (text.size() > 4)
        for (qsizetype at = text.size() - 3; at > 0; at -= 3) text.insert(at, QChar(0x2009));
    return text;
}

} // namespace posiscope::ui
