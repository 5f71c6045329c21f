// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCoreApplication>
#include <QSettings>
#include <QTemporaryDir>

namespace posiscope::test {

/// Keeps the program's settings in a folder of the test, away from the user's own.
inline void keep_settings_in(const QTemporaryDir& folder)
{
    QCoreApplication::setOrganizationName(QStringLiteral("PosiscopeTest"));
    QCoreApplication::setApplicationName(QStringLiteral("PosiscopeTest"));
    QSettings::setDefaultFormat(QSettings::IniFormat);
    QSettings::setPath(QSettings::IniFormat, QSettings::UserScope, folder.path());
}

} // namespace posiscope::test
