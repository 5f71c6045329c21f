// SPDX-License-Identifier: GPL-3.0-or-later
// Every metric of every map against the values of an independent implementation (tests/data/reference).
#include <cmath>
#include <string>

#include <QFloat16> // JSON asks what it can become
#include <QFile>
#include <QIODevice>
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/export/npy.h"
#include "core/metrics/map_report.h"
#include "core/metrics/metric_list.h"

namespace posiscope::core {
namespace {

using Json = nlohmann::ordered_json;

const std::string reference_folder = std::string(POSISCOPE_TEST_DATA) + "/reference/";

/// 1e-9 relative, with a floor for values that are zero but for rounding.
constexpr double relative_tolerance = 1e-9;
constexpr double absolute_tolerance = 1e-12;

Json reference_cases()
{
    QFile file(QString::fromStdString(reference_folder + "cases.json"));
    if (!file.open(QIODevice::ReadOnly)) return {};
    return Json::parse(file.readAll().toStdString());
}

PositionMap reference_map(const std::string& name)
{
    const auto source = open_file(reference_folder + "maps/" + name + ".npy");
    if (!source) return {};
    auto array = read_npy(**source);
    if (!array || array->shape.size() != 2) return {};
    PositionMap map;
    map.length = static_cast<std::size_t>(array->shape[0]);
    map.values = std::move(array->values);
    return map;
}

bool close(double found, double wanted)
{
    return std::abs(found - wanted) <= std::max(absolute_tolerance, relative_tolerance * std::abs(wanted));
}

/// The first difference between two reports as "path: found, wanted", or nothing. Structure and keys must be equal.
QString difference(const Json& found, const Json& wanted, const std::string& path)
{
    const auto differs = [&] {
        return QString::fromStdString(path + ": " + found.dump() + ", wanted " + wanted.dump());
    };
    if (wanted.is_object()) {
        if (!found.is_object() || found.size() != wanted.size()) return differs();
        for (const auto& [key, value] : wanted.items()) {
            if (!found.contains(key)) return QString::fromStdString(path + "." + key + " is missing");
            const QString inner = difference(found[key], value, path + "." + key);
            if (!inner.isEmpty()) return inner;
        }
        return {};
    }
    if (wanted.is_array()) {
        if (!found.is_array() || found.size() != wanted.size()) return differs();
        for (std::size_t n = 0; n < wanted.size(); ++n) {
            const QString inner = difference(found[n], wanted[n], path + "[" + std::to_string(n) + "]");
            if (!inner.isEmpty()) return inner;
        }
        return {};
    }
    if (wanted.is_number() && found.is_number())
        return close(found.get<double>(), wanted.get<double>()) ? QString() : differs();
    return found == wanted ? QString() : differs();
}

Json at_id(const Json& report, std::string_view id)
{
    const std::size_t dot = id.find('.');
    const std::string head(id.substr(0, dot));
    if (!report.contains(head)) return nullptr;
    return dot == std::string_view::npos ? report[head] : at_id(report[head], id.substr(dot + 1));
}

} // namespace

class ReferenceCases : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void maps_data()
    {
        QTest::addColumn<QString>("name");
        const Json cases = reference_cases();
        QVERIFY(cases.size() > 20);
        for (const auto& [name, values] : cases.items())
            if (values.contains("all")) QTest::newRow(name.c_str()) << QString::fromStdString(name);
    }

    void maps()
    {
        QFETCH(QString, name);
        const Json wanted = reference_cases()[name.toStdString()];
        const PositionMap map = reference_map(name.toStdString());
        QVERIFY(map.length > 0);
        const Json found = map_report(map, wanted["probabilities"].get<bool>());
        const QString text = difference(found, wanted, name.toStdString());
        QVERIFY2(text.isEmpty(), qPrintable(text));
    }

    /// The rows of the metric list are the same numbers as the report.
    void metric_list_values_data() { maps_data(); }
    void metric_list_values()
    {
        QFETCH(QString, name);
        const Json wanted = reference_cases()[name.toStdString()];
        const PositionMap map = reference_map(name.toStdString());
        const Quantity quantity =
            wanted["probabilities"].get<bool>() ? Quantity::probabilities : Quantity::logits;
        for (const Metric& metric : metric_list()) {
            const double found = metric.evaluate(map, quantity);
            Json value = at_id(wanted["all"], metric.id);
            if (value.is_array()) {
                double sum = 0.0;
                double count = 0.0;
                for (const Json& entry : value)
                    if (!entry.is_null()) {
                        sum += entry.get<double>();
                        count += 1.0;
                    }
                value = count > 0.0 ? Json(sum / count) : Json(nullptr);
            }
            if (value.is_null())
                QVERIFY2(std::isnan(found), metric.id.data());
            else
                QVERIFY2(close(found, value.get<double>()), metric.id.data());
        }
    }

    void grid()
    {
        const Json wanted = reference_cases()["grid_5x7"];
        const Json found = map_report(reference_map("grid_5x7"), false, Grid{5, 7});
        for (const auto& [key, value] : wanted.items()) {
            const QString text = difference(found[key], value, key);
            QVERIFY2(text.isEmpty(), qPrintable(text));
        }
        const Json wrong_grid = map_report(reference_map("grid_5x7"), false, Grid{5, 6});
        QVERIFY(wrong_grid["translation_invariance_violation_2d"].is_null());
        QVERIFY(wrong_grid["monotonicity_violation_2d"].is_null());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::ReferenceCases)
#include "tst_reference_cases.moc"
