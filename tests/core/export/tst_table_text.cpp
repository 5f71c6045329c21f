// SPDX-License-Identifier: GPL-3.0-or-later
#include <clocale>
#include <limits>
#include <string>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/export/table_text.h"
#include "core/metrics/metric_list.h"

namespace posiscope::core {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t invariance = 0; // rows of the metric list
constexpr std::size_t direction = 6;
constexpr std::size_t band_width = 8;

MetricTable table_of(const std::string& model)
{
    MetricRow row{model, "encoder", 2, mean_of_heads, Quantity::probabilities, PositionChoice::without_first,
                  false, {}};
    row.values.assign(metric_list().size(), MetricValue{undefined, undefined});
    row.values[invariance] = {0.0190625, 0.0005};
    row.values[direction] = {-0.125, undefined};
    row.values[band_width] = {3.0, 0.25};
    MetricRow head = row;
    head.head = 11;
    head.quantity = Quantity::constants_removed;
    head.positions = PositionChoice::all;
    head.values[invariance] = {undefined, undefined};
    return {{row, head}};
}

std::string text(const MetricTable& table, TableFormat format)
{
    return table_text(table, {format, {invariance, direction, band_width}, 3});
}

} // namespace

class TableText : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void metrics_are_where_the_test_thinks()
    {
        QCOMPARE(metric_list()[invariance].id, std::string_view("translation_invariance_violation"));
        QCOMPARE(metric_list()[direction].id, std::string_view("direction_balance"));
        QCOMPARE(metric_list()[band_width].id, std::string_view("white_band.width"));
    }

    void csv()
    {
        const std::string wanted =
            "model,stack,layer,head,quantity,positions,"
            "translation_invariance_violation,translation_invariance_violation.standard_error,"
            "direction_balance,direction_balance.standard_error,white_band.width,white_band.width.standard_"
            "error\r\n"
            "\"a \"\"b\"\", c\",encoder,2,mean,probabilities,without_first,0.0190625,5e-04,-0.125,,3,0.25\r\n"
            "\"a \"\"b\"\", c\",encoder,2,11,constants_removed,all,,,-0.125,,3,0.25\r\n";
        QCOMPARE(text(table_of("a \"b\", c"), TableFormat::csv), wanted);
        const std::string lines = text(table_of("two\nlines"), TableFormat::csv);
        QVERIFY(lines.find("\r\n\"two\nlines\",encoder") != std::string::npos);
        QVERIFY(text(table_of(""), TableFormat::csv).find("\r\n,encoder,2,mean") != std::string::npos);
        QVERIFY(text(table_of(" x"), TableFormat::csv).find("\r\n\" x\",encoder") != std::string::npos);
    }

    void markdown()
    {
        const std::string wanted =
            "| Model | Stack | Layer | Head | Quantity | Positions | TI | Dir | Band |\n"
            "| --- | --- | ---: | --- | --- | --- | ---: | ---: | ---: |\n"
            "| a\\|b\\_c\\*\\<i\\> | encoder | 2 | mean | probabilities | without first | 0.019 \u00b1 0.001 "
            "| -0.125 | "
            "3 \u00b1 0.2 |\n"
            "| a\\|b\\_c\\*\\<i\\> | encoder | 2 | 11 | logits, constants removed | all | \u2014 | -0.125 | "
            "3 \u00b1 0.2 |\n";
        QCOMPARE(text(table_of("a|b_c*<i>"), TableFormat::markdown), wanted);
        // A line end cannot break the table.
        const std::string lines = text(table_of("two\nlines"), TableFormat::markdown);
        QCOMPARE(std::count(lines.begin(), lines.end(), '\n'), std::ptrdiff_t{4});
    }

    void latex()
    {
        const std::string wanted =
            "% Needs \\usepackage{booktabs} in the preamble.\n"
            "\\begin{tabular}{llrlllrrr}\n"
            "\\toprule\n"
            "Model & Stack & Layer & Head & Quantity & Positions & TI & Dir & Band \\\\\n"
            "\\midrule\n"
            "{a\\_b \\& 50\\% \\$\\#\\{\\}\\textasciitilde{}\\textasciicircum{}"
            "\\textbackslash{}} & encoder & 2 & mean & probabilities & without first & "
            "$0.019 \\pm 0.001$ & $-0.125$ & $3 \\pm 0.2$ \\\\\n";
        const std::string found = text(table_of("a_b & 50% $#{}~^\\"), TableFormat::latex);
        QVERIFY2(found.starts_with(wanted), found.c_str());
        QVERIFY(found.find("& all & --- & $-0.125$") != std::string::npos);
        QVERIFY(found.ends_with("\\\\\n\\bottomrule\n\\end{tabular}\n"));
    }

    void numbers_at_the_edges()
    {
        MetricTable table = table_of("m");
        table.rows[0].values[invariance] = {-0.0001, 12345678.0};
        table.rows[0].values[direction] = {std::numeric_limits<double>::infinity(), undefined};
        const std::string found = text(table, TableFormat::markdown);
        QVERIFY2(found.find("| 0.000 \u00b1 1.235e+07 | \u221e |") != std::string::npos, found.c_str());
        QVERIFY(text(table, TableFormat::latex).find("$\\infty$") != std::string::npos);
        QVERIFY(text(table, TableFormat::csv).find(",-1e-04,12345678,inf,,") != std::string::npos);
        // More decimals on request; a row of an older list has what it has.
        QVERIFY(table_text(table, {TableFormat::markdown, {invariance}, 5}).find("-0.00010") !=
                std::string::npos);
        table.rows[0].values.clear();
        QVERIFY(text(table, TableFormat::markdown).find("| \u2014 | \u2014 | \u2014 |") != std::string::npos);
    }

    void every_metric_by_default()
    {
        const std::string found = table_text(table_of("m"), {});
        for (const Metric& metric : metric_list())
            QVERIFY(found.find("," + std::string(metric.id) + "," + std::string(metric.id) +
                               ".standard_error") != std::string::npos);
    }

    void decimal_point_in_any_locale()
    {
        const char* found_locale = nullptr;
        for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"})
            if (found_locale == nullptr) found_locale = std::setlocale(LC_NUMERIC, name);
        const std::string found = text(table_of("m"), TableFormat::csv);
        std::setlocale(LC_NUMERIC, "C");
        QVERIFY(found.find(",0.0190625,") != std::string::npos);
    }

    void json()
    {
        const auto found = table_json(table_of("bad \xff name"));
        QCOMPARE(found.size(), std::size_t{2});
        QCOMPARE(found[0]["head"].get<std::string>(), std::string("mean"));
        QCOMPARE(found[1]["head"].get<int>(), 11);
        QCOMPARE(found[1]["quantity"].get<std::string>(), std::string("constants_removed"));
        QCOMPARE(found[0]["metrics"]["white_band.width"]["standard_error"].get<double>(), 0.25);
        QVERIFY(found[1]["metrics"]["translation_invariance_violation"]["value"].is_null());
        QVERIFY(!found.dump().empty()); // throws on text that is not UTF-8
    }

    void format_by_file_name()
    {
        QCOMPARE(table_format_of("a.b/table.MD"), TableFormat::markdown);
        QCOMPARE(table_format_of("table.tex"), TableFormat::latex);
        QCOMPARE(table_format_of("table.csv"), TableFormat::csv);
        QCOMPARE(table_format_of("table"), TableFormat::csv);
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TableText)
#include "tst_table_text.moc"
