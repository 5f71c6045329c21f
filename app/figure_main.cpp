// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/figure_main.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <QGuiApplication>

#include "app/probe_arguments.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "ui/figure/figure_command.h"

namespace posiscope::app {
namespace {

constexpr int exit_done = 0;
constexpr int exit_refused = 1;
constexpr int exit_usage = 2;

/// The command line as it was typed; what is empty was not given.
struct FigureArguments {
    ProbeArguments probe;
    std::string location;
    std::string view = "attention_heatmap";
    std::string out;
    std::string preset = "one-column";
    std::string width, height, font, font_family;
    std::string head = "mean";
    std::string quantity = "constants_removed";
    bool quantity_given = false;
    std::string color_map, scale, letter;
    std::string method = "tsne", start = "pca", part;
    double perplexity = core::TsneOptions{}.perplexity;
    std::size_t iterations = core::TsneOptions{}.iterations;
    bool dot = false;
    bool without_first = false;
    bool title = false;
    int dpi = ui::FigureOptions{}.dpi;
};

/// Qt's remarks about the desktop (a missing runtime folder) are not for people who asked for a file.
void drop_remarks(QtMsgType type, const QMessageLogContext&, const QString& text)
{
    if (type == QtCriticalMsg || type == QtFatalMsg)
        std::fprintf(stderr, "posiscope: %s\n", qPrintable(text));
}

template <class Rows>
std::vector<std::string> ids_of(const Rows& rows)
{
    std::vector<std::string> ids;
    for (const auto& row : rows) ids.emplace_back(row.id);
    return ids;
}

CLI::Validator length_check(std::optional<double> (*parse)(const QString&), double least, double most,
                            const std::string& unit)
{
    return {[=](const std::string& text) -> std::string {
                const std::optional<double> value = parse(QString::fromStdString(text));
                if (value && *value >= least && *value <= most) return {};
                return core::in_quotes(text, 40) + ": wanted " + std::to_string(static_cast<int>(least)) +
                       " to " + std::to_string(static_cast<int>(most)) + " " + unit + ", such as 84mm or 8pt";
            },
            "LENGTH"};
}

void add_arguments(CLI::App& program, FigureArguments& arguments)
{
    program.add_option("checkpoint", arguments.location, "Folder, weight file, or sample:NAME")->required();
    program.add_option("--view", arguments.view, "What to draw")
        ->check(CLI::IsMember(ui::figure_view_ids()))
        ->capture_default_str();
    program.add_option("--out", arguments.out, "File to write: .pdf, .svg or .png")
        ->required()
        ->check([](const std::string& path) -> std::string {
            if (ui::figure_format_of(QString::fromStdString(path))) return {};
            return core::in_quotes(path) + ": a figure's name ends in .pdf, .svg or .png";
        });
    program.add_option("--preset", arguments.preset, "Size and font for a purpose")
        ->check(CLI::IsMember(ids_of(ui::figure_presets())))
        ->capture_default_str();
    const CLI::Validator millimetres =
        length_check(ui::parse_millimetres, ui::least_figure_mm, ui::largest_figure_mm, "mm");
    program.add_option("--width", arguments.width, "Width of the page: 84mm, 8.4cm, 3.3in")
        ->check(millimetres);
    program.add_option("--height", arguments.height, "Height of the page (default: as the figure needs)")
        ->check(millimetres);
    program.add_option("--font", arguments.font, "Size of the text: 8pt")
        ->check(length_check(ui::parse_points, ui::least_font_pt, ui::largest_font_pt, "pt"));
    program.add_option("--font-family", arguments.font_family, "Family of the text");
    program.add_option("--dpi", arguments.dpi, "Resolution of PNG")
        ->check(CLI::Range(ui::least_dpi, ui::largest_dpi))
        ->capture_default_str();
    program.add_option("--head", arguments.head, "Head, from 0, or mean")
        ->check([](const std::string& text) -> std::string {
            const bool number =
                !text.empty() && text.size() < 6 &&
                std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
            return number || text == "mean" ? std::string()
                                            : core::in_quotes(text, 40) + ": a number or mean";
        })
        ->capture_default_str();
    program
        .add_option_function<std::string>(
            "--quantity",
            [&arguments](const std::string& quantity) {
                arguments.quantity = quantity;
                arguments.quantity_given = true;
            },
            "What the map holds; of a metric table: these rows only")
        ->default_str(arguments.quantity)
        ->check(CLI::IsMember({"logits", "constants_removed", "probabilities"}));
    program.add_flag("--without-first", arguments.without_first,
                     "Leave the first position out (with --special: every special one)");
    program.add_option("--color-map", arguments.color_map, "Colours of a heatmap")
        ->check(CLI::IsMember(ids_of(ui::color_maps())));
    program.add_option("--scale", arguments.scale, "How values become colours")
        ->check(CLI::IsMember(ids_of(ui::scale_kinds())));
    program.add_option("--method", arguments.method, "How a position map is made")
        ->check(CLI::IsMember({"tsne", "pca"}))
        ->capture_default_str();
    program.add_option("--perplexity", arguments.perplexity, "Neighbours that count in t-SNE")
        ->check(CLI::Range(1.0, 1e6))
        ->capture_default_str();
    program.add_option("--iterations", arguments.iterations, "Steps of t-SNE")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1000000}))
        ->capture_default_str();
    program.add_option("--init", arguments.start, "Where t-SNE starts; --seed is that of random")
        ->check(CLI::IsMember({"pca", "random"}))
        ->capture_default_str();
    program.add_flag("--dot", arguments.dot, "Position similarity: dot product in place of the cosine");
    program.add_option(
        "--show", arguments.part,
        "Of position_similarity: similarity, norms, singular_values or spectrum; of relative_bias: "
        "curves or map");
    program.add_flag("--title", arguments.title, "Draw a title (captions are for papers)");
    program.add_option("--letter", arguments.letter, "Letter of the panel: a is drawn as (a)")
        ->check([](const std::string& text) -> std::string {
            return text.size() <= 8 ? std::string() : core::in_quotes(text, 40) + ": one or two letters";
        });
    add_probe_arguments(program, arguments.probe);
    add_threads_argument(program);
}

ui::FigureRequest request_of(const FigureArguments& arguments)
{
    ui::FigureRequest request;
    request.location = arguments.location;
    request.view = arguments.view;
    request.out = arguments.out;
    request.probe_options = [probe = arguments.probe](const core::OpenModel& model,
                                                      std::vector<std::string>& warnings) {
        return probe_options(probe, model, warnings);
    };
    if (arguments.head != "mean") request.display.head = std::stoi(arguments.head);
    for (const core::Quantity quantity :
         {core::Quantity::logits, core::Quantity::constants_removed, core::Quantity::probabilities})
        if (core::quantity_id(quantity) == arguments.quantity) request.display.quantity = quantity;
    if (arguments.quantity_given) request.table_quantity = request.display.quantity;
    request.pca = arguments.method == "pca";
    request.tsne.perplexity = arguments.perplexity;
    request.tsne.iterations = arguments.iterations;
    request.tsne.seed = arguments.probe.seed;
    request.tsne.start = arguments.start == "random" ? core::TsneStart::random : core::TsneStart::pca;
    request.similarity = arguments.dot ? core::SimilarityKind::dot : core::SimilarityKind::cosine;
    request.part = arguments.part;
    if (arguments.probe.length_given) request.vectors = arguments.probe.length;
    if (arguments.without_first) request.display.positions = core::PositionChoice::without_first;
    request.scale = ui::find_scale_kind(arguments.scale);

    ui::FigureOptions& options = request.options;
    if (const ui::FigurePreset* preset = ui::find_figure_preset(arguments.preset)) {
        options.width_mm = preset->width_mm;
        options.height_mm = preset->height_mm;
        options.font_pt = preset->font_pt;
    }
    if (const auto width = ui::parse_millimetres(QString::fromStdString(arguments.width)))
        options.width_mm = *width;
    if (const auto height = ui::parse_millimetres(QString::fromStdString(arguments.height)))
        options.height_mm = *height;
    if (const auto font = ui::parse_points(QString::fromStdString(arguments.font))) options.font_pt = *font;
    options.font_family = QString::fromStdString(arguments.font_family);
    options.color_map = ui::find_color_map(arguments.color_map);
    options.title = arguments.title;
    options.letter = QString::fromStdString(arguments.letter);
    options.dpi = arguments.dpi;
    return request;
}

} // namespace

int figure_main(int argc, char** argv)
{
    CLI::App program{"Draws a figure of a checkpoint to a PDF, SVG or PNG file; needs no screen"};
    program.name("posiscope figure");
    program.set_version_flag("--version", std::string("posiscope ") + core::version);
    FigureArguments arguments;
    add_arguments(program, arguments);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& fault) {
        return program.exit(fault) == 0 ? exit_done : exit_usage;
    }
    if (arguments.probe.layer == "all") {
        std::fputs("posiscope figure: --layer all: a figure shows one layer; give its number\n", stderr);
        return exit_usage;
    }
    try {
        // Fonts come from Qt, a screen is not wanted even where there is one.
        qInstallMessageHandler(drop_remarks);
        qputenv("QT_QPA_PLATFORM", "offscreen");
        int qt_argc = 1;
        QGuiApplication application(qt_argc, argv);
        QGuiApplication::setApplicationName(QStringLiteral("Posiscope"));
        QGuiApplication::setApplicationVersion(QLatin1String(core::version));
        return ui::run_figure_command(request_of(arguments));
    } catch (const std::bad_alloc&) {
        std::fputs("posiscope: there is not enough memory\n", stderr);
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "posiscope: %s\n", core::printable(fault.what(), 400).c_str());
    }
    return exit_refused;
}

} // namespace posiscope::app
