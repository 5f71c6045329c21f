// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/metrics/metric_list.h"

#include <array>
#include <limits>

#include "core/metrics/attention_distance.h"
#include "core/metrics/direction_balance.h"
#include "core/metrics/first_position_extra.h"
#include "core/metrics/flatness.h"
#include "core/metrics/locality.h"
#include "core/metrics/monotonicity.h"
#include "core/metrics/symmetry.h"
#include "core/metrics/translation_invariance.h"
#include "core/metrics/white_band.h"

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::string_view wang_2021 =
    "Property: Wang et al., \"On Position Embeddings in BERT\", ICLR 2021; formula: Posiscope";
constexpr std::string_view chen_2023 =
    "Chen, Varoquaux & Suchanek, \"The Locality and Symmetry of Positional Encodings\", EMNLP Findings 2023";
constexpr std::string_view posiscope = "Posiscope";

double evaluate_translation_invariance(const PositionMap& map, Quantity quantity)
{
    // Causal probabilities fall as 1 / (i + 1) along every diagonal by themselves: nothing to learn from it.
    if (quantity == Quantity::probabilities && is_causal(map)) return undefined;
    return translation_invariance_violation(map);
}

template <std::size_t within>
double evaluate_monotonicity(const PositionMap& map, Quantity quantity)
{
    return is_flat(map, quantity) ? undefined : monotonicity_violation(map, within);
}

template <std::size_t within>
double evaluate_monotonicity_steps(const PositionMap& map, Quantity quantity)
{
    return is_flat(map, quantity) ? undefined : monotonicity_violation_steps(map, within);
}

double evaluate_symmetry(const PositionMap& map, Quantity quantity)
{
    return is_flat(map, quantity) ? undefined : symmetry_violation(map);
}

template <std::size_t within>
double evaluate_direction_balance(const PositionMap& map, Quantity quantity)
{
    return is_flat(map, quantity) ? undefined : direction_balance(map, quantity, within);
}

template <double WhiteBand::*member>
double evaluate_white_band(const PositionMap& map, Quantity quantity)
{
    return is_flat(map, quantity) ? undefined : white_band(map).*member;
}

double evaluate_first_position_extra(const PositionMap& map, Quantity quantity)
{
    return is_flat(map, quantity) ? undefined : first_position_extra(map, quantity);
}

double evaluate_locality(const PositionMap& map, Quantity quantity)
{
    return quantity == Quantity::probabilities ? locality(map) : undefined;
}

double evaluate_locality_symmetry(const PositionMap& map, Quantity quantity)
{
    return quantity == Quantity::probabilities ? locality_symmetry(map) : undefined;
}

template <std::vector<double> AttentionDistance::*member>
double evaluate_attention_distance(const PositionMap& map, Quantity quantity)
{
    return quantity == Quantity::probabilities ? mean_of_defined(attention_distance(map).*member) : undefined;
}

} // namespace

std::span<const Metric> metric_list()
{
    static constexpr std::array metrics{
        Metric{"translation_invariance_violation", "Translation invariance violation", "TI",
               BetterWhen::lower, 0.0, 1.0, false,
               "Share of the map's variance that the offset alone does not explain. 0: every diagonal is "
               "constant; "
               "noise gives nearly 1.",
               wang_2021, evaluate_translation_invariance},
        Metric{"monotonicity_violation_local", "Monotonicity violation within 20", "Mono 20",
               BetterWhen::lower, 0.0, 1.0, false,
               "Share of the variation that goes up instead of down when the key moves away from the query, "
               "within 20 "
               "offsets. 0: always down; 1/2: no trend.",
               wang_2021, evaluate_monotonicity<local_offsets>},
        Metric{"monotonicity_violation_all", "Monotonicity violation", "Mono", BetterWhen::lower, 0.0, 1.0,
               false,
               "Share of the variation that goes up instead of down when the key moves away from the query, "
               "over all "
               "offsets. 0: always down; 1/2: no trend.",
               wang_2021, evaluate_monotonicity<all_offsets>},
        Metric{"monotonicity_violation_steps_local", "Rising steps within 20", "Up 20", BetterWhen::lower,
               0.0, 1.0, false,
               "Share of the steps away from the query that go up, each step counted once, within 20 "
               "offsets; tiny "
               "steps are left out.",
               wang_2021, evaluate_monotonicity_steps<local_offsets>},
        Metric{"monotonicity_violation_steps_all", "Rising steps", "Up", BetterWhen::lower, 0.0, 1.0, false,
               "Share of the steps away from the query that go up, each step counted once, over all offsets; "
               "tiny "
               "steps are left out.",
               wang_2021, evaluate_monotonicity_steps<all_offsets>},
        Metric{
            "symmetry_violation", "Symmetry violation", "Sym", BetterWhen::lower, 0.0, 1.0, false,
            "Share of the map's energy that changes sign when query and key change places. 0: preceding and "
            "following words count the same; 1: they are opposites; noise gives 1/2.",
            wang_2021, evaluate_symmetry},
        Metric{"direction_balance", "Direction balance", "Dir", BetterWhen::near_zero, -1.0, 1.0, false,
               "Preference for preceding words over following ones. Positive: attends more to what precedes.",
               wang_2021, evaluate_direction_balance<all_offsets>},
        Metric{"direction_balance_local", "Direction balance within 20", "Dir 20", BetterWhen::near_zero,
               -1.0, 1.0, false,
               "Preference for preceding words over following ones, within 20 offsets. Positive: attends "
               "more to what "
               "precedes.",
               wang_2021, evaluate_direction_balance<local_offsets>},
        Metric{"white_band.width", "White band width", "Band", BetterWhen::neutral, 0.0, 11.0, true,
               "How many offsets around 0 a word hardly attends to: itself and its nearest neighbours. 0: no "
               "band.",
               wang_2021, evaluate_white_band<&WhiteBand::width>},
        Metric{"white_band.depth", "White band depth", "Depth", BetterWhen::neutral, 0.0, infinity, false,
               "How far attention to the word itself lies below the lower of the two peaks beside the band, "
               "in the "
               "map's own unit.",
               wang_2021, evaluate_white_band<&WhiteBand::depth>},
        Metric{"white_band.depth_sd", "White band depth in standard deviations", "Depth/sd",
               BetterWhen::neutral, 0.0, infinity, false,
               "Depth of the white band divided by the standard deviation of the offset profile within 20 "
               "offsets.",
               wang_2021, evaluate_white_band<&WhiteBand::depth_sd>},
        Metric{"white_band.first", "White band begins at offset", "From", BetterWhen::neutral, -10.0, 0.0,
               true, "First offset of the white band.", wang_2021, evaluate_white_band<&WhiteBand::first>},
        Metric{"white_band.last", "White band ends at offset", "To", BetterWhen::neutral, 0.0, 10.0, true,
               "Last offset of the white band.", wang_2021, evaluate_white_band<&WhiteBand::last>},
        Metric{"first_position_extra", "Extra attention to the first position", "First", BetterWhen::neutral,
               0.0, infinity, false,
               "How many times more attention the first position gets than its offset alone would give it. "
               "1: nothing "
               "special.",
               wang_2021, evaluate_first_position_extra},
        Metric{
            "locality", "Locality", "Loc", BetterWhen::neutral, 0.0, 1.0, false,
            "Attention weighted by 1 / 2^distance, mean over queries. 1: every word attends to itself alone. "
            "Probabilities only.",
            chen_2023, evaluate_locality},
        Metric{"locality_symmetry", "Symmetry within rows", "Loc sym", BetterWhen::higher, 0.0, 1.0, false,
               "1 minus the scaled difference between attention to the left and to the right at equal "
               "distance, mean "
               "over queries. Probabilities only.",
               chen_2023, evaluate_locality_symmetry},
        Metric{"attention_distance", "Attention distance", "Dist", BetterWhen::neutral, 0.0, infinity, false,
               "How far a query looks on average, in positions, mean over queries. Probabilities only.",
               posiscope, evaluate_attention_distance<&AttentionDistance::distance>},
        Metric{"attention_distance_ratio", "Attention distance against uniform", "Dist/uni",
               BetterWhen::neutral, 0.0, infinity, false,
               "Attention distance divided by that of a query that attends to all its keys equally, mean "
               "over queries. "
               "Probabilities only.",
               posiscope, evaluate_attention_distance<&AttentionDistance::ratio>},
    };
    return metrics;
}

} // namespace posiscope::core
