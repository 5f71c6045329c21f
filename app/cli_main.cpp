// SPDX-License-Identifier: GPL-3.0-or-later
// posiscope-cli: the core without Qt.
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stop_token>

#include <pthread.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "app/checkpoint_commands.h"
#include "app/cli_commands.h"
#include "app/position_commands.h"
#include "app/probe_arguments.h"
#include "core/base/heap.h"
#include "core/base/text.h"
#include "core/base/version.h"

namespace {

using namespace posiscope;

/// Turns SIGINT and SIGTERM into a stop request: a thread of its own waits for them, since a stop request takes
/// locks that a signal handler must not. A second signal ends the program at once.
class Interruption {
public:
    Interruption()
    {
        sigemptyset(&m_signals);
        sigaddset(&m_signals, SIGINT);
        sigaddset(&m_signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &m_signals, nullptr);
        pthread_create(&m_thread, nullptr, &Interruption::wait, this);
        pthread_detach(m_thread);
    }

    [[nodiscard]] std::stop_token token() const { return m_source.get_token(); }

private:
    static void* wait(void* self_pointer)
    {
        auto* self = static_cast<Interruption*>(self_pointer);
        int received = 0;
        sigwait(&self->m_signals, &received);
        self->m_source.request_stop();
        sigwait(&self->m_signals, &received);
        _exit(app::exit_interrupted);
    }

    sigset_t m_signals{};
    pthread_t m_thread{};
    std::stop_source m_source;
};

/// A progress bar on a terminal; nothing in a pipe.
class TerminalProgress {
public:
    void show(const core::Progress& progress)
    {
        if (!m_terminal || progress.total == 0) return;
        const int percent = static_cast<int>(100 * progress.done / progress.total);
        if (percent == m_percent) return;
        m_percent = percent;
        std::fprintf(stderr, "\r%-12.*s %3d %%", static_cast<int>(progress.stage.size()),
                     progress.stage.data(), percent);
        if (progress.done >= progress.total) std::fputs("\r                  \r", stderr);
        std::fflush(stderr);
    }

private:
    bool m_terminal = isatty(STDERR_FILENO) != 0;
    int m_percent = -1;
};

int run(int argc, char** argv)
{
    CLI::App program{"Posiscope: what position embeddings do"};
    program.name("posiscope-cli");
    program.set_version_flag("--version", std::string("posiscope-cli ") + core::version);
    program.require_subcommand(1);
    program.footer(
        "CHECKPOINT is a folder with a config and weights, a weight file or an index of shards with the "
        "config beside it,\n"
        "the prefix of a TensorFlow checkpoint, a folder of the Hugging Face cache, "
        "hf://org/name[@revision], an https\n"
        "address, or sample:NAME. Exit status: 0 done, 1 input refused, 2 wrong usage, 130 interrupted.");

    app::InfoArguments info;
    CLI::App* info_command = program.add_subcommand("info", "Say what a checkpoint holds");
    info_command->add_option("CHECKPOINT", info.checkpoint)->required();
    info_command->add_flag("--json", info.json, "Print one JSON object");
    app::add_threads_argument(*info_command);

    app::ProbeCommandArguments probe;
    CLI::App* probe_command = program.add_subcommand("probe", "Run the identical-word probe");
    probe_command->add_option("CHECKPOINT", probe.checkpoints)->required();
    app::add_probe_arguments(*probe_command, probe.probe);
    probe_command->add_flag("--terms", probe.terms, "Also the parts of the first layer's logits");
    probe_command->add_flag("--groups", probe.groups, "Also write the means of the groups of words");
    probe_command->add_flag("--logits-only", probe.logits_only, "Leave the probabilities out");
    probe_command->add_flag("--no-errors", probe.no_errors, "Leave the standard errors over words out");
    probe_command->add_option("--out", probe.out, "Folder for maps, metrics and provenance");
    probe_command->add_flag("--json", probe.json, "Print one JSON object");
    app::add_threads_argument(*probe_command);

    app::MetricsArguments metrics;
    CLI::App* metrics_command = program.add_subcommand("metrics", "Property metrics of a map in a .npy file");
    metrics_command->add_option("MAP", metrics.map, "[L, L], or [heads, L, L], which is averaged over heads")
        ->required();
    metrics_command->add_flag("--probabilities", metrics.probabilities,
                              "The map holds attention probabilities");
    metrics_command->add_flag("--causal", metrics.causal, "Keys after the query do not exist");
    metrics_command->add_option("--grid", metrics.grid, "Rows and columns of image patches: 14x14");
    metrics_command->add_flag("--json", metrics.json, "Print one JSON object");
    app::add_threads_argument(*metrics_command);

    app::MapArguments map;
    CLI::App* map_command = program.add_subcommand("map", "Lay position vectors out in the plane");
    map_command->add_option("CHECKPOINT", map.checkpoint)->required();
    map_command->add_option("--stack", map.stack, "encoder, decoder, ... (default: the model's first)");
    map_command->add_option("--method", map.method, "tsne or pca")->check(CLI::IsMember({"tsne", "pca"}));
    map_command->add_option("--perplexity", map.perplexity, "t-SNE: how many neighbours count (default 30)");
    map_command->add_option("--seed", map.seed, "t-SNE: seed of a random start (default 0)");
    map_command->add_option("--iterations", map.iterations, "t-SNE: steps of descent at most (default 1000)");
    map_command->add_option("--init", map.start, "t-SNE: pca (default) or random")
        ->check(CLI::IsMember({"pca", "random"}));
    map_command->add_option("--length", map.length, "Rows where the vectors are computed (default 512)")
        ->check(CLI::Range(1, 16384));
    map_command->add_option("--out", map.out, "File for the points: .csv (position,x,y), .json or .npy");
    map_command->add_flag("--json", map.json, "Print one JSON object");
    app::add_threads_argument(*map_command);

    app::BiasArguments bias;
    CLI::App* bias_command = program.add_subcommand("bias", "The relative bias by offset");
    bias_command->add_option("CHECKPOINT", bias.checkpoint)->required();
    bias_command->add_option("--stack", bias.stack, "encoder, decoder, ... (default: the model's first)");
    bias_command->add_option("--layer", bias.layer, "Where layers have their own (default 0)");
    bias_command->add_option("--length", bias.length, "Positions (default 128)");
    bias_command->add_option("--out", bias.out, "File for the maps, [heads, L, L] as .npy");
    bias_command->add_flag("--json", bias.json, "Print one JSON object");
    app::add_threads_argument(*bias_command);

    app::SimilarityArguments similarity;
    CLI::App* similarity_command =
        program.add_subcommand("similarity", "Similarity, spectrum and decodability of position vectors");
    similarity_command->add_option("CHECKPOINT", similarity.checkpoint)->required();
    similarity_command->add_option("--stack", similarity.stack,
                                   "encoder, decoder, ... (default: the model's first)");
    similarity_command->add_flag("--dot", similarity.dot, "Dot products instead of cosines");
    similarity_command->add_option("--seed", similarity.seed, "Seed of the five folds (default 0)");
    similarity_command
        ->add_option("--length", similarity.length, "Rows where the vectors are computed (default 512)")
        ->check(CLI::Range(1, 16384));
    similarity_command->add_option("--out", similarity.out, "File for the similarities, [n, n] as .npy");
    similarity_command->add_flag("--json", similarity.json, "Print one JSON object");
    app::add_threads_argument(*similarity_command);

    app::ModelsArguments models;
    CLI::App* models_command = program.add_subcommand("models", "List the models in the Hugging Face cache");
    models_command->add_option("--cache", models.folder,
                               "Folder (default: HF_HUB_CACHE, HF_HOME/hub, ~/.cache/huggingface/hub)");
    models_command->add_flag("--json", models.json, "Print one JSON object");
    app::add_threads_argument(*models_command);

    app::TensorArguments tensor;
    CLI::App* tensor_command = program.add_subcommand("tensor", "Say what the values of one tensor are like");
    tensor_command->add_option("CHECKPOINT", tensor.checkpoint)->required();
    tensor_command->add_option("NAME", tensor.name, "As 'info' lists it")->required();
    tensor_command->add_option("--out", tensor.out, "File for its values, float32 as .npy");
    tensor_command->add_flag("--json", tensor.json, "Print one JSON object");
    app::add_threads_argument(*tensor_command);

    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& fault) {
        return program.exit(fault) == 0 ? app::exit_done : app::exit_usage;
    }

    Interruption interruption;
    TerminalProgress progress;
    core::RunContext ctx;
    ctx.stop = interruption.token();
    ctx.progress = [&progress](const core::Progress& now) { progress.show(now); };
    if (info_command->parsed()) return app::run_info(info, ctx);
    if (probe_command->parsed()) return app::run_probe(probe, ctx);
    if (map_command->parsed()) return app::run_map(map, ctx);
    if (models_command->parsed()) return app::run_models(models, ctx);
    if (tensor_command->parsed()) return app::run_tensor(tensor, ctx);
    if (bias_command->parsed()) return app::run_bias(bias, ctx);
    if (similarity_command->parsed()) return app::run_similarity(similarity, ctx);
    return app::run_metrics(metrics, ctx);
}

} // namespace

int main(int argc, char** argv)
{
    core::keep_freed_memory();
    try {
        return run(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fputs("posiscope-cli: there is not enough memory\n", stderr);
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "posiscope-cli: %s\n", core::printable(fault.what(), 400).c_str());
    }
    return app::exit_refused;
}
