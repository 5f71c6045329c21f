// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/views/analysis_view.h"

#include <QSettings>

namespace posiscope::ui {

void AnalysisView::setChoices(const QVariantMap&) {}

void AnalysisView::saveChoices(QSettings& settings) const
{
    const QVariantMap now = choices();
    for (auto choice = now.begin(); choice != now.end(); ++choice)
        settings.setValue(choice.key(), choice.value());
}

void AnalysisView::restoreChoices(QSettings& settings)
{
    QVariantMap kept = choices();
    for (auto choice = kept.begin(); choice != kept.end(); ++choice)
        choice.value() = settings.value(choice.key(), choice.value());
    setChoices(kept);
}

} // namespace posiscope::ui
