// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/analysis_settings.h"

#include <QCoreApplication>

#include <algorithm>

#include "core/probe/identical_word_probe.h"

namespace posiscope::ui {

QString setting_label(SettingField field)
{
    const auto translated = [](const char* text) { return QCoreApplication::translate("posiscope", text); };
    switch (field) {
    case SettingField::stack: return translated("stack");
    case SettingField::layer: return translated("layer");
    case SettingField::head: return translated("head");
    case SettingField::quantity: return translated("quantity");
    case SettingField::words: return translated("words");
    case SettingField::length: return translated("length");
    case SettingField::variant: return translated("special tokens");
    case SettingField::positions: return translated("first position");
    case SettingField::seed: return translated("seed");
    case SettingField::model_fit: return translated("settings that fit the model");
    }
    return {};
}

AnalysisSettings fitted_settings(AnalysisSettings settings, const core::OpenModel& model)
{
    const core::Stack* stack = model.architecture.find_stack(settings.probe.stack);
    if (stack == nullptr) {
        settings.probe.stack.clear();
        stack = model.architecture.find_stack({});
    }
    if (stack == nullptr) return settings;
    const int last_layer = static_cast<int>(std::max<std::int64_t>(stack->layers_present, 1)) - 1;
    settings.probe.layer = std::clamp(settings.probe.layer, 0, last_layer);
    if (settings.display.head >= static_cast<int>(stack->heads_of(settings.probe.layer)))
        settings.display.head = core::mean_of_heads;
    if (!stack->has_special_input()) settings.probe.variant = core::InputVariant::plain;
    if (!stack->has_plain_input()) settings.probe.variant = core::InputVariant::special;
    settings.probe.length = core::default_length(*stack, settings.probe.variant, settings.probe.length);
    return settings;
}

bool probe_satisfies(const core::ProbeOptions& have, const core::ProbeOptions& wanted)
{
    core::ProbeOptions same = have;
    if (have.terms && !wanted.terms) same.terms = false; // more than was asked for does no harm
    return same == wanted;
}

} // namespace posiscope::ui
