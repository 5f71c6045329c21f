// SPDX-License-Identifier: GPL-3.0-or-later
#include <QApplication>
#include <QFileInfo>
#include <QIcon>
#include <QStringList>
#include <QTimer>

#include <cstdio>
#include <string>
#include <string_view>

#include "app/figure_main.h"
#include "core/base/heap.h"
#include "core/base/version.h"
#include "core/checkpoint/file_store.h"
#include "core/checkpoint/remote_store.h"
#include "core/kernels/thread_pool.h"
#include "ui/convert.h"
#include "ui/main_window.h"

namespace {

constexpr int exit_done = 0;
constexpr int exit_usage = 2;

constexpr const char* usage =
    "Usage: posiscope [--threads N] [CHECKPOINT...]\n"
    "       posiscope figure CHECKPOINT --view VIEW --out FILE [options]   (posiscope figure --help)\n"
    "\n"
    "Opens the window. CHECKPOINT is a folder with config.json and model.safetensors, a .safetensors file\n"
    "with the config beside it, or sample:NAME; without one the embedded sample is shown.\n"
    "\n"
    "  --threads N   threads to compute with (default: OMP_NUM_THREADS, else the cores)\n"
    "  --help        this text\n"
    "  --version     the version\n";

struct WindowArguments {
    QStringList locations;
    std::string fault; ///< not empty: what is wrong with the command line
};

WindowArguments read_arguments(const QStringList& arguments)
{
    WindowArguments out;
    for (qsizetype k = 1; k < arguments.size(); ++k) {
        const QString& argument = arguments[k];
        if (argument == QLatin1String("--threads")) {
            bool is_number = false;
            const int threads = k + 1 < arguments.size() ? arguments[k + 1].toInt(&is_number) : 0;
            if (!is_number || threads < 1) {
                out.fault = "--threads takes a whole number of at least 1";
                return out;
            }
            posiscope::core::set_thread_count(static_cast<std::size_t>(threads));
            ++k;
        } else if (argument.startsWith(u'-') && argument.size() > 1) {
            out.fault = "unknown option " + posiscope::ui::to_std(argument);
            return out;
        } else {
            out.locations.append(argument);
        }
    }
    return out;
}

/// Absolute where it is a path, so that the recent list works from any folder.
QString full_location(const QString& location)
{
    const bool is_sample = location.startsWith(posiscope::ui::to_qstring(posiscope::core::sample_prefix));
    const bool is_path = !is_sample && !posiscope::core::is_remote_location(location.toStdString());
    return is_path ? QFileInfo(location).absoluteFilePath() : location;
}

} // namespace

int main(int argc, char** argv)
{
    posiscope::core::keep_freed_memory();
    if (argc > 1 && std::string_view(argv[1]) == "figure")
        return posiscope::app::figure_main(argc - 1, argv + 1);
    for (int k = 1; k < argc; ++k) {
        const std::string_view argument = argv[k];
        if (argument == "--help" || argument == "-h") {
            std::fputs(usage, stdout);
            return exit_done;
        }
        if (argument == "--version") {
            std::printf("posiscope %s\n", posiscope::core::version);
            return exit_done;
        }
    }

    QApplication application(argc, argv); // takes Qt's own options out of the arguments
    QApplication::setOrganizationName(QStringLiteral("Posiscope"));
    QApplication::setApplicationName(QStringLiteral("Posiscope"));
    QApplication::setApplicationVersion(QLatin1String(posiscope::core::version));
    QApplication::setDesktopFileName(QStringLiteral("org.posiscope.Posiscope"));

    const WindowArguments arguments = read_arguments(QApplication::arguments());
    if (!arguments.fault.empty()) {
        std::fprintf(stderr, "posiscope: %s\n%s", arguments.fault.c_str(), usage);
        return exit_usage;
    }

    QIcon icon;
    for (const int size : {16, 32, 48, 128, 256})
        icon.addFile(QStringLiteral(":/icons/org.posiscope.Posiscope-%1.png").arg(size));
    QApplication::setWindowIcon(icon);

    posiscope::ui::MainWindow window;
    window.show();
    // After the first frame: opening runs in the background, the window is there at once.
    QTimer::singleShot(0, &window, [&window, &arguments] {
        if (arguments.locations.isEmpty()) window.openFirstSample();
        for (const QString& location : arguments.locations) window.openLocation(full_location(location));
    });
    return QApplication::exec();
}
