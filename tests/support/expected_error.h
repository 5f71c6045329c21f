// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <QString>

#include "core/base/result.h"
#include "core/base/text.h"

namespace posiscope::tests {

/// Empty where `result` is the error that is wanted: its code, and a message of one line that holds every one of
/// `named`. Else what is wrong, for QCOMPARE(refusal(...), QString()).
template <class T>
QString refusal(const core::Result<T>& result, core::ErrorCode code, const std::vector<std::string>& named)
{
    if (result) return QStringLiteral("it succeeded");
    const core::Error& error = result.error();
    const QString message = QString::fromStdString(error.message);
    if (error.code != code)
        return QStringLiteral("the code is %1: %2")
            .arg(QString::fromStdString(std::string(core::error_code_name(error.code))), message);
    if (message.contains(QLatin1Char('\n')) || message.isEmpty())
        return QStringLiteral("the message is no single line: ") + message;
    for (const std::string& name : named)
        if (error.message.find(name) == std::string::npos)
            return QStringLiteral("'%1' is not named: %2").arg(QString::fromStdString(name), message);
    return {};
}

/// Whether one of the sentences holds every one of `named`.
inline bool any_holds(const std::vector<std::string>& sentences, const std::vector<std::string>& named)
{
    for (const std::string& sentence : sentences) {
        bool all = true;
        for (const std::string& name : named) all = all && sentence.find(name) != std::string::npos;
        if (all) return true;
    }
    return false;
}

/// The message of a result that should have succeeded, for QVERIFY2.
template <class T>
std::string failure(const core::Result<T>& result)
{
    return result ? std::string() : core::describe(result.error());
}

} // namespace posiscope::tests
