// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/session_text.h"

#include <QCoreApplication>

#include "ui/convert.h"

namespace posiscope::ui {
namespace {

QString translated(const char* text)
{
    return QCoreApplication::translate("posiscope", text);
}

} // namespace

QString quantity_label(core::Quantity quantity)
{
    switch (quantity) {
    case core::Quantity::logits: return translated("logits");
    case core::Quantity::constants_removed: return translated("logits \u2212const");
    case core::Quantity::probabilities: return translated("probabilities");
    }
    return {};
}

QString quantity_short_label(core::Quantity quantity)
{
    switch (quantity) {
    case core::Quantity::logits: return translated("Logits");
    case core::Quantity::constants_removed: return translated("\u2212const");
    case core::Quantity::probabilities: return translated("Probabilities");
    }
    return {};
}

QString quantity_axis_label(core::Quantity quantity)
{
    switch (quantity) {
    case core::Quantity::logits: return translated("attention logit");
    case core::Quantity::constants_removed: return translated("attention logit \u2212 query constant");
    case core::Quantity::probabilities: return translated("attention probability");
    }
    return {};
}

QString positions_label(core::PositionChoice positions)
{
    return positions == core::PositionChoice::all ? translated("all") : translated("without first");
}

QString head_label(int head, std::int64_t heads)
{
    if (head != core::mean_of_heads) return translated("head %1").arg(head);
    return heads == 1 ? translated("1 head") : translated("mean of %1 heads").arg(heads);
}

QString words_label(const core::ProbeResult& probe)
{
    constexpr std::size_t most_named = 3;
    const std::size_t count = probe.word_ids.size();
    if (probe.options.words.kind == core::WordSelection::Kind::all)
        return translated("all %1 words").arg(count);
    if (probe.options.words.kind == core::WordSelection::Kind::listed && count <= most_named &&
        probe.words.size() == count)
        return to_qstrings(probe.words).join(translated(", "));
    return count == 1 ? translated("1 word") : translated("%1 words").arg(count);
}

QString way_label(core::ProbeWay way)
{
    switch (way) {
    case core::ProbeWay::closed_form: return translated("closed form");
    case core::ProbeWay::one_row: return translated("one row per word");
    case core::ProbeWay::forward: return translated("forward pass");
    }
    return {};
}

QString term_label(const QString& id)
{
    if (id == QLatin1String("word_word")) return translated("word\u2013word");
    if (id == QLatin1String("word_position")) return translated("word\u2013position");
    if (id == QLatin1String("position_word")) return translated("position\u2013word");
    if (id == QLatin1String("position_position")) return translated("position\u2013position");
    if (id == QLatin1String("relative")) return translated("relative");
    return id;
}

QString describe_picture(const core::Session& session)
{
    if (!session.model || !session.probe) return {};
    const core::ProbeResult& probe = *session.probe;
    QStringList parts{to_qstring(session.model->checkpoint->display_name()),
                      to_qstring(probe.options.stack),
                      translated("layer %1").arg(probe.options.layer),
                      head_label(session.display.head, probe.heads),
                      quantity_label(session.display.quantity),
                      words_label(probe),
                      translated("L %1").arg(probe.length)};
    if (probe.options.variant == core::InputVariant::special) parts.append(translated("special tokens"));
    if (session.display.positions == core::PositionChoice::without_first)
        parts.append(probe.options.variant == core::InputVariant::special
                         ? translated("special positions left out")
                         : translated("first position left out"));
    if (probe.options.no_positions) parts.append(translated("positions taken out"));
    parts.removeAll(QString());
    return parts.join(QStringLiteral(" \u00b7 "));
}

QString scheme_line(const core::OpenModel& model)
{
    const core::Architecture& architecture = model.architecture;
    QString line = to_qstring(architecture.family_label);
    if (!architecture.stacks.empty())
        line += QStringLiteral(", ") + to_qstring(architecture.stacks.front().scheme_label);
    return line;
}

QString sizes_line(const core::OpenModel& model)
{
    const core::Stack* stack = model.architecture.find_stack({});
    if (stack == nullptr) return {};
    QStringList parts;
    parts.append(stack->layers_present < stack->layers
                     ? translated("%1 of %2 layers").arg(stack->layers_present).arg(stack->layers)
                 : stack->layers == 1 ? translated("1 layer")
                                      : translated("%1 layers").arg(stack->layers));
    parts.append(stack->heads == 1 ? translated("1 head") : translated("%1 heads").arg(stack->heads));
    parts.append(translated("d %1").arg(stack->hidden_size));
    if (stack->length_limit) parts.append(translated("L \u2264 %1").arg(*stack->length_limit));
    return parts.join(QStringLiteral(" \u00b7 "));
}

QStringList session_warnings(const core::Session& session)
{
    QStringList out;
    if (session.model) out += to_qstrings(session.model->warnings);
    if (session.probe) out += to_qstrings(session.probe->warnings);
    out.removeDuplicates();
    return out;
}

} // namespace posiscope::ui
