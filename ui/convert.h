// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QStringList>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace posiscope::ui {

inline QString to_qstring(std::string_view text)
{
    return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

inline std::string to_std(const QString& text)
{
    return text.toStdString();
}

QStringList to_qstrings(const std::vector<std::string>& texts);

/// The failure as a sentence for people: begins with a capital, ends with a full stop.
QString sentence_for(const core::Error& error);

/// What the user can do about a failure of this kind, as a sentence; empty where there is nothing to say.
/// @param location  of the file or folder that was worked with, which may be gone; empty: none
QString advice_for(core::ErrorCode code, const QString& location = {});

/// Whether it names a file or folder of this machine that is not there.
bool is_gone(const QString& location);

/// What a long function is doing ("bootstrap"), in words for the progress bar.
QString stage_label(const QString& stage);
/// The same, with the bytes where they come over a network.
QString stage_label(const QString& stage, qulonglong done, qulonglong total);

/// A number with `decimals` digits and a true minus sign; "-" where it is not finite.
QString shown_number(double value, int decimals);

/// A number to about four significant digits for the cursor read-out, with a true minus sign.
QString shown_value(double value);

/// A standard error to two significant digits.
QString shown_error(double error);

/// A whole number with its sign, +3 or the true minus: offsets are always shown so.
QString shown_offset(int offset);

} // namespace posiscope::ui
