// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include <QFloat16> // QCOMPARE of two JSON values asks what they can become
#include <QProcess>
#include <QProcessEnvironment>
#include <QString>
#include <QStringList>

#include <nlohmann/json.hpp>

namespace posiscope::tests {

/// What a run of posiscope-cli left behind.
struct Run {
    int status = -1;
    QString output, errors;

    [[nodiscard]] nlohmann::json object() const
    {
        return nlohmann::json::parse(output.toStdString(), nullptr, false);
    }
    [[nodiscard]] QStringList error_lines() const
    {
        return errors.split(QLatin1Char('\n'), Qt::SkipEmptyParts);
    }
};

inline Run run(const QStringList& arguments, const QStringList& environment = {})
{
    QProcess process;
    QProcessEnvironment variables = QProcessEnvironment::systemEnvironment();
    for (const QString& one : environment)
        variables.insert(one.section(QLatin1Char('='), 0, 0), one.section(QLatin1Char('='), 1));
    process.setProcessEnvironment(variables);
    process.start(QStringLiteral(POSISCOPE_CLI), arguments);
    process.closeWriteChannel();
    Run result;
    if (!process.waitForFinished(60000)) return result;
    if (process.exitStatus() == QProcess::NormalExit) result.status = process.exitCode();
    result.output = QString::fromUtf8(process.readAllStandardOutput());
    result.errors = QString::fromUtf8(process.readAllStandardError());
    return result;
}

inline QString text(const std::string& from)
{
    return QString::fromStdString(from);
}

/// Empty where the run ended as a refusal must: status 1, nothing on standard output, one line on standard error
/// that holds every one of `named`. Else what is wrong.
inline QString refusal(const Run& result, const QStringList& named)
{
    if (result.status != 1) return QStringLiteral("status %1: %2").arg(result.status).arg(result.errors);
    if (!result.output.isEmpty()) return QStringLiteral("standard output holds ") + result.output;
    if (result.error_lines().size() != 1 || !result.errors.startsWith(QStringLiteral("posiscope-cli: ")))
        return QStringLiteral("not one line: ") + result.errors;
    for (const QString& name : named)
        if (!result.errors.contains(name))
            return QStringLiteral("'%1' is not named: %2").arg(name, result.errors);
    return {};
}

} // namespace posiscope::tests
