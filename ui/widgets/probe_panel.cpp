// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/widgets/probe_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QFrame>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QRegularExpression>
#include <QSlider>
#include <QSpinBox>
#include <QStackedWidget>
#include <QVBoxLayout>

#include <algorithm>
#include <limits>

#include "core/probe/identical_word_probe.h"
#include "ui/analysis_controller.h"
#include "ui/convert.h"
#include "ui/session_text.h"
#include "ui/theme.h"
#include "ui/widgets/section_label.h"
#include "ui/widgets/segmented_buttons.h"

namespace posiscope::ui {
namespace {

constexpr int least_length = 2;
constexpr int most_length_typed = 8192; ///< beyond any table: the probe then says which limit was passed
constexpr int slider_end_without_limit = 512;

/// Order of the choices of words.
enum WordsKind { sampled_words, typed_words, word_ids, all_words };

/// What was typed, cut at commas and blanks.
QStringList typed_parts(const QString& text)
{
    static const QRegularExpression separators(QStringLiteral("[,;\\s]+"));
    return text.split(separators, Qt::SkipEmptyParts);
}

void tell(QWidget* widget, const QString& accessible_name, const QString& tool_tip)
{
    widget->setAccessibleName(accessible_name);
    widget->setToolTip(tool_tip);
}

} // namespace

ProbePanel::ProbePanel(AnalysisController* controller, QWidget* parent)
    : QWidget(parent), m_controller(controller), m_stack_label(new QLabel(tr("Stack"), this)),
      m_stack(new QComboBox(this)), m_layer(new QSpinBox(this)), m_layer_count(new QLabel(this)),
      m_head(new QComboBox(this)), m_quantity(new SegmentedButtons(this)), m_words_kind(new QComboBox(this)),
      m_words_pages(new QStackedWidget(this)), m_word_count(new QSpinBox(this)),
      m_words_edit(new QLineEdit(this)), m_words_all(new QLabel(this)),
      m_length_slider(new QSlider(Qt::Horizontal, this)), m_length_box(new QSpinBox(this)),
      m_special(new QCheckBox(tr("Special tokens around the words"), this)),
      m_with_first(new QCheckBox(tr("With the first position"), this)), m_seed(new QSpinBox(this))
{
    build();
    connectAll();
    takeWords(controller->settings().probe.words);
    takeSettings();
}

void ProbePanel::build()
{
    tell(m_stack, tr("Stack"), tr("Which stack of layers the words go through."));
    tell(m_layer, tr("Layer"), tr("The attention layer that is looked at, counted from 0.\nKeys: [ and ]"));
    tell(m_head, tr("Attention head"),
         tr("One attention head, or the mean over all heads.\nKeys: comma and full stop; M for the mean"));
    m_quantity->setAccessibleName(tr("Quantity shown"));
    m_quantity->addChoice(
        quantity_short_label(core::Quantity::logits),
        tr("Attention logits: what the softmax receives, scale and biases included.\nKey: L for "
           "the next quantity"),
        tr("Show logits"));
    m_quantity->addChoice(
        quantity_short_label(core::Quantity::constants_removed),
        tr("Logits with the query constants removed: a constant per query changes nothing after "
           "the softmax,\nso it is fitted and taken out. What is left is what position does."),
        tr("Show logits without query constants"));
    m_quantity->addChoice(quantity_short_label(core::Quantity::probabilities),
                          tr("Attention probabilities: after the softmax. Each row sums to 1."),
                          tr("Show probabilities"));
    m_words_kind->addItems({tr("Sampled"), tr("Typed"), tr("By id"), tr("All")});
    tell(m_words_kind, tr("Choice of words"),
         tr("Each word is repeated L times, and the maps are averaged over the words:\nwhat is left is what "
            "position "
            "does, whatever the word."));
    m_word_count->setRange(1, 1'000'000);
    m_word_count->setGroupSeparatorShown(true);
    m_word_count->setKeyboardTracking(false);
    tell(m_word_count, tr("Number of words"), tr("How many words are drawn at random, without replacement."));
    tell(m_words_edit, tr("Words"),
         tr("Words (or ids of the vocabulary), separated by commas or blanks. Press Enter to use them."));
    m_words_edit->setAcceptDrops(false); // a folder dropped here is to be opened, not typed
    m_words_pages->addWidget(m_word_count);
    m_words_pages->addWidget(m_words_edit);
    m_words_pages->addWidget(m_words_all);
    m_words_pages->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_length_slider->setPageStep(16);
    tell(m_length_slider, tr("Length"),
         tr("How many times the word is repeated (L), special tokens included."));
    m_length_box->setRange(least_length, most_length_typed);
    m_length_box->setKeyboardTracking(false);
    tell(m_length_box, tr("Length"), m_length_slider->toolTip());
    tell(m_special, tr("Special tokens around the words"),
         tr("[CLS] word ... word [SEP] in the model's own order, in place of words only."));
    tell(m_with_first, tr("With the first position"),
         tr("Off: position 0 (with special tokens: every special position) is left out of maps and "
            "profiles.\nIn BERT "
            "it behaves unlike all others."));
    m_seed->setRange(0, std::numeric_limits<int>::max());
    m_seed->setKeyboardTracking(false);
    tell(m_seed, tr("Seed"),
         tr("Seed of the draw of words and of the bootstrap: the same seed, the same numbers."));

    auto* layout = new QGridLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setHorizontalSpacing(grid);
    layout->setVerticalSpacing(grid);
    layout->setColumnStretch(1, 1);
    int row = 0;
    layout->addWidget(new SectionLabel(tr("Probe"), this), row++, 0, 1, 2);
    const auto labelled = [&](QLabel* label, QWidget* buddy) {
        label->setBuddy(buddy);
        layout->addWidget(label, row, 0);
    };
    const auto pair = [](QWidget* left, QWidget* right, int right_stretch) {
        auto* box = new QHBoxLayout;
        box->setSpacing(grid);
        box->addWidget(left);
        box->addWidget(right, right_stretch);
        return box;
    };
    labelled(m_stack_label, m_stack);
    layout->addWidget(m_stack, row++, 1);
    labelled(new QLabel(tr("Layer"), this), m_layer);
    layout->addLayout(pair(m_layer, m_layer_count, 1), row++, 1);
    labelled(new QLabel(tr("Head"), this), m_head);
    layout->addWidget(m_head, row++, 1);
    layout->addWidget(m_quantity, row++, 0, 1, 2);
    labelled(new QLabel(tr("Words"), this), m_words_kind);
    layout->addLayout(pair(m_words_kind, m_words_pages, 1), row++, 1);
    labelled(new QLabel(tr("Length"), this), m_length_slider);
    auto* length = new QHBoxLayout;
    length->setSpacing(grid);
    length->addWidget(m_length_slider, 1);
    length->addWidget(m_length_box);
    layout->addLayout(length, row++, 1);
    labelled(new QLabel(tr("Seed"), this), m_seed);
    layout->addWidget(m_seed, row++, 1);
    layout->addWidget(m_special, row++, 0, 1, 2);
    layout->addWidget(m_with_first, row++, 0, 1, 2);
}

template <class Change>
void ProbePanel::apply(SettingField field, Change change)
{
    if (m_is_taking) return;
    AnalysisSettings settings = m_controller->settings();
    change(settings);
    m_controller->change(settings, field);
}

void ProbePanel::connectAll()
{
    connect(m_controller, &AnalysisController::settingsChanged, this, &ProbePanel::takeSettings);

    connect(m_stack, &QComboBox::currentIndexChanged, this, [this](int index) {
        apply(SettingField::stack, [&](AnalysisSettings& settings) {
            settings.probe.stack = to_std(m_stack->itemData(index).toString());
            if (const OpenEntry* open = m_controller->current())
                settings = fitted_settings(settings, *open->model);
        });
    });
    connect(m_layer, &QSpinBox::valueChanged, this, [this](int layer) {
        apply(SettingField::layer, [&](AnalysisSettings& settings) {
            settings.probe.layer = layer;
            if (const OpenEntry* open = m_controller->current())
                settings = fitted_settings(settings, *open->model); // a layer may have heads of its own
        });
    });
    connect(m_head, &QComboBox::currentIndexChanged, this, [this](int index) {
        apply(SettingField::head, [&](AnalysisSettings& settings) {
            settings.display.head = index <= 0 ? core::mean_of_heads : index - 1;
        });
    });
    connect(m_quantity, &SegmentedButtons::chosen, this, [this](int index) {
        apply(SettingField::quantity, [&](AnalysisSettings& settings) {
            settings.display.quantity = static_cast<core::Quantity>(index);
        });
    });
    connect(m_words_kind, &QComboBox::currentIndexChanged, this, [this](int kind) {
        if (m_is_taking) return;
        m_words_pages->setCurrentIndex(kind == sampled_words ? 0 : kind == all_words ? 2 : 1);
        if (kind == typed_words || kind == word_ids) {
            m_words_edit->setPlaceholderText(kind == typed_words ? tr("the, cat") : tr("5, 7"));
            m_words_edit->clear();
            m_words_edit->setFocus(); // nothing to compute before something is typed
            return;
        }
        applyWords();
    });
    connect(m_word_count, &QSpinBox::valueChanged, this, &ProbePanel::applyWords);
    connect(m_words_edit, &QLineEdit::editingFinished, this, &ProbePanel::applyWords);
    connect(m_length_slider, &QSlider::valueChanged, this, [this](int length) {
        apply(SettingField::length, [&](AnalysisSettings& settings) { settings.probe.length = length; });
    });
    connect(m_length_box, &QSpinBox::valueChanged, this, [this](int length) {
        apply(SettingField::length, [&](AnalysisSettings& settings) { settings.probe.length = length; });
    });
    connect(m_special, &QCheckBox::toggled, this, [this](bool on) {
        apply(SettingField::variant, [&](AnalysisSettings& settings) {
            settings.probe.variant = on ? core::InputVariant::special : core::InputVariant::plain;
            // An image's length follows; a text keeps the one that was chosen.
            if (const core::Stack* stack = m_controller->stack();
                stack != nullptr && !core::has_free_length(*stack))
                settings.probe.length =
                    core::default_length(*stack, settings.probe.variant, settings.probe.length);
        });
    });
    connect(m_with_first, &QCheckBox::toggled, this, [this](bool on) {
        apply(SettingField::positions, [&](AnalysisSettings& settings) {
            settings.display.positions = on ? core::PositionChoice::all : core::PositionChoice::without_first;
        });
    });
    connect(m_seed, &QSpinBox::valueChanged, this, [this](int seed) {
        apply(SettingField::seed,
              [&](AnalysisSettings& settings) { settings.probe.seed = static_cast<std::uint64_t>(seed); });
    });
}

void ProbePanel::applyWords()
{
    core::WordSelection words;
    words.count = static_cast<std::size_t>(m_word_count->value());
    switch (m_words_kind->currentIndex()) {
    case all_words: words.kind = core::WordSelection::Kind::all; break;
    case sampled_words: words.kind = core::WordSelection::Kind::sampled; break;
    default: {
        words.kind = core::WordSelection::Kind::listed;
        const QStringList parts = typed_parts(m_words_edit->text());
        if (parts.isEmpty()) return;
        const bool by_id = m_words_kind->currentIndex() == word_ids;
        for (const QString& part : parts) {
            bool is_number = false;
            const qlonglong id = by_id ? part.toLongLong(&is_number) : 0;
            // What is no number cannot be an id: the probe looks it up as a word, and says so if there is none.
            if (is_number)
                words.ids.push_back(id);
            else
                words.words.push_back(to_std(part));
        }
        break;
    }
    }
    apply(SettingField::words, [&](AnalysisSettings& settings) { settings.probe.words = words; });
}

void ProbePanel::takeSettings()
{
    m_is_taking = true;
    const AnalysisSettings& settings = m_controller->settings();
    const core::Stack* stack = m_controller->stack();
    setEnabled(stack != nullptr);
    if (stack != nullptr) {
        const auto& stacks = m_controller->current()->model->architecture.stacks;
        m_stack->clear();
        for (const core::Stack& one : stacks) m_stack->addItem(to_qstring(one.id), to_qstring(one.id));
        m_stack->setCurrentIndex(m_stack->findData(to_qstring(stack->id)));
        m_stack->setVisible(stacks.size() > 1);
        m_stack_label->setVisible(stacks.size() > 1);

        m_layer->setRange(0, std::max(1, static_cast<int>(stack->layers_present)) - 1);
        m_layer_count->setText(tr("of %1").arg(stack->layers));
        m_layer_count->setToolTip(stack->layers_present < stack->layers
                                      ? tr("The file holds the weights of the first %1 of %2 layers.")
                                            .arg(stack->layers_present)
                                            .arg(stack->layers)
                                      : QString());
        m_layer->setEnabled(stack->layers_present > 1);

        const int heads = static_cast<int>(stack->heads_of(settings.probe.layer));
        if (m_head->count() != heads + 1) {
            m_head->clear();
            m_head->addItem(tr("Mean of %1").arg(heads));
            for (int head = 0; head < heads; ++head) m_head->addItem(tr("Head %1").arg(head));
        }
        const int limit =
            stack->length_limit
                ? static_cast<int>(std::min<std::int64_t>(*stack->length_limit, most_length_typed))
                : slider_end_without_limit;
        m_length_slider->setRange(least_length, std::max(least_length, limit));
        const bool free_length = core::has_free_length(*stack); // an image has the length of its patches
        m_length_slider->setEnabled(free_length);
        m_length_box->setEnabled(free_length);
        m_special->setEnabled(stack->has_special_input() && stack->has_plain_input());
        // In the place of words an image has patches and an audio encoder vectors, which are drawn.
        const bool has_words = stack->content == core::InputContent::words;
        m_words_kind->setEnabled(has_words);
        if (!has_words) m_words_pages->setCurrentIndex(sampled_words);
        m_words_all->setText(tr("%1 words").arg(m_controller->current()->model->vocabulary.drawable_count()));
    }
    m_layer->setValue(settings.probe.layer);
    m_head->setCurrentIndex(settings.display.head + 1);
    m_quantity->setCurrent(static_cast<int>(settings.display.quantity));
    // A choice that has been opened but not yet typed into is left alone by changes of other settings.
    if (settings.probe.words != m_taken_words) takeWords(settings.probe.words);
    m_length_slider->setValue(static_cast<int>(settings.probe.length));
    m_length_box->setValue(static_cast<int>(settings.probe.length));
    m_special->setChecked(settings.probe.variant == core::InputVariant::special);
    m_with_first->setChecked(settings.display.positions == core::PositionChoice::all);
    m_seed->setValue(static_cast<int>(settings.probe.seed));
    m_is_taking = false;
}

void ProbePanel::takeWords(const core::WordSelection& words)
{
    m_taken_words = words;
    switch (words.kind) {
    case core::WordSelection::Kind::sampled:
        m_words_kind->setCurrentIndex(sampled_words);
        m_words_pages->setCurrentIndex(0);
        m_word_count->setValue(static_cast<int>(words.count));
        break;
    case core::WordSelection::Kind::all:
        m_words_kind->setCurrentIndex(all_words);
        m_words_pages->setCurrentIndex(2);
        break;
    case core::WordSelection::Kind::listed: {
        QStringList parts = to_qstrings(words.words);
        for (const std::int64_t id : words.ids) parts.append(QString::number(id));
        m_words_kind->setCurrentIndex(words.ids.empty() ? typed_words : word_ids);
        m_words_pages->setCurrentIndex(1);
        // Not while the person types: the cursor would jump.
        if (typed_parts(m_words_edit->text()) != parts)
            m_words_edit->setText(parts.join(QStringLiteral(", ")));
        break;
    }
    }
}

} // namespace posiscope::ui
