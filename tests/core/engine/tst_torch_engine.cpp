// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTest>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/checkpoint/checkpoint.h"
#include "core/model/engine.h"
#include "core/model/engine_library.h"
#include "tests/support/npy_file.h"

using namespace posiscope::core;
using posiscope::tests::NpyArray;
using posiscope::tests::read_golden;

namespace {

constexpr std::int64_t length = 17;
constexpr std::int64_t hidden = 32;
const std::vector<std::int64_t> words{17, 42, 66, 91, 113, 138, 160, 187};

QString text(const std::string& message)
{
    return QString::fromStdString(message);
}

/// The tiny BERT under tests/data with layers 0 .. `last_layer` as plain arrays. Named by hand, not by the family's
/// own table: this test stands on the file alone.
class TinyBert {
public:
    TinyBert()
    {
        auto opened = open_checkpoint(std::string(POSISCOPE_TEST_DATA) + "/families/bert", {});
        if (opened)
            m_checkpoint = *opened;
        else
            m_fault = describe(opened.error());
    }

    [[nodiscard]] const std::string& fault() const { return m_fault; }

    [[nodiscard]] Network model(int last_layer, bool special)
    {
        Network model;
        model.heads = 4;
        model.head_dim = hidden / model.heads;
        model.logit_scale = 1.0 / std::sqrt(static_cast<double>(model.head_dim));
        model.word_rows = content_rows(words);
        std::vector<std::int64_t> positions(length);
        for (std::int64_t n = 0; n < length; ++n) positions[static_cast<std::size_t>(n)] = n;
        model.position_rows = rows("embeddings.position_embeddings.weight", positions);
        model.embedding_norm.kind = NormKind::layer_norm;
        model.embedding_norm.epsilon = 1e-12;
        model.embedding_norm.gain = whole("embeddings.LayerNorm.weight");
        model.embedding_norm.bias = whole("embeddings.LayerNorm.bias");
        if (special) {
            constexpr std::int64_t cls = 2;
            constexpr std::int64_t sep = 3;
            model.special_rows.push_back({0, row_of(content_rows({cls}))});
            model.special_rows.push_back({length - 1, row_of(content_rows({sep}))});
        }
        for (int n = 0; n <= last_layer; ++n) {
            const std::string at = "encoder.layer." + std::to_string(n) + ".";
            NetworkLayer layer;
            layer.query.weight = whole(at + "attention.self.query.weight");
            layer.query.bias = whole(at + "attention.self.query.bias");
            layer.key.weight = whole(at + "attention.self.key.weight");
            layer.key.bias = whole(at + "attention.self.key.bias");
            if (n < last_layer) {
                layer.value.weight = whole(at + "attention.self.value.weight");
                layer.value.bias = whole(at + "attention.self.value.bias");
                layer.attention_output.weight = whole(at + "attention.output.dense.weight");
                layer.attention_output.bias = whole(at + "attention.output.dense.bias");
                layer.activation = "gelu";
                layer.attention_output_norm.kind = layer.feed_forward_output_norm.kind = NormKind::layer_norm;
                layer.attention_output_norm.epsilon = layer.feed_forward_output_norm.epsilon = 1e-12;
                layer.attention_output_norm.gain = whole(at + "attention.output.LayerNorm.weight");
                layer.attention_output_norm.bias = whole(at + "attention.output.LayerNorm.bias");
                layer.feed_forward_in.weight = whole(at + "intermediate.dense.weight");
                layer.feed_forward_in.bias = whole(at + "intermediate.dense.bias");
                layer.feed_forward_out.weight = whole(at + "output.dense.weight");
                layer.feed_forward_out.bias = whole(at + "output.dense.bias");
                layer.feed_forward_output_norm.gain = whole(at + "output.LayerNorm.weight");
                layer.feed_forward_output_norm.bias = whole(at + "output.LayerNorm.bias");
            }
            model.layers.push_back(std::move(layer));
        }
        return model;
    }

private:
    HostTensor keep(Result<HostTensor> read)
    {
        if (read) return std::move(*read);
        m_fault = describe(read.error());
        return {};
    }
    HostTensor whole(const std::string& name) { return keep(m_checkpoint->read(name)); }
    HostTensor rows(const std::string& name, const std::vector<std::int64_t>& which)
    {
        return keep(m_checkpoint->read_rows(name, which));
    }
    HostTensor content_rows(const std::vector<std::int64_t>& ids)
    {
        HostTensor content = rows("embeddings.word_embeddings.weight", ids);
        const HostTensor type = rows("embeddings.token_type_embeddings.weight", {0});
        for (std::size_t n = 0; n < content.size(); ++n) content.values()[n] += type.values()[n % hidden];
        return content;
    }
    static HostTensor row_of(const HostTensor& matrix)
    {
        return HostTensor(Shape{hidden}, std::vector<float>(matrix.values().begin(), matrix.values().end()));
    }

    std::shared_ptr<const Checkpoint> m_checkpoint;
    std::string m_fault;
};

ForwardOptions grouped_options()
{
    ForwardOptions options;
    // Not in runs: word n falls into group n mod 3.
    options.groups = 3;
    for (std::size_t n = 0; n < words.size(); ++n) options.group_of_word.push_back(n % options.groups);
    options.threads = 2;
    return options;
}

/// Largest difference, in units of the reference's largest magnitude.
double relative_error(const HostTensor& found, const NpyArray& expected)
{
    if (found.shape() != expected.shape) return std::numeric_limits<double>::infinity();
    double difference = 0.0;
    double magnitude = 0.0;
    for (std::size_t n = 0; n < expected.values.size(); ++n) {
        const double at = std::fabs(static_cast<double>(found.values()[n]) - expected.values[n]);
        if (std::isnan(at)) return std::numeric_limits<double>::infinity();
        difference = std::max(difference, at);
        magnitude = std::max(magnitude, std::fabs(expected.values[n]));
    }
    return magnitude > 0.0 ? difference / magnitude : std::numeric_limits<double>::infinity();
}

} // namespace

class TestTorchEngine : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        auto engine = load_engine();
        QVERIFY2(engine, engine ? "" : describe(engine.error()).c_str());
        m_engine = *engine;
        QVERIFY2(m_bert.fault().empty(), m_bert.fault().c_str());
    }

    void says_what_runs()
    {
        QVERIFY(text(m_engine->version()).startsWith(QStringLiteral("LibTorch ")));
        QVERIFY(!m_engine->kernels().empty());
        QVERIFY(!m_engine->devices().empty());
        QCOMPARE(m_engine->devices().front(), std::string("cpu"));
        QCOMPARE(m_engine->has_cuda(), m_engine->devices().size() > 1);
        for (const std::string& warning : m_engine->warnings())
            QVERIFY2(!text(warning).contains(QStringLiteral("cannot be trusted")), warning.c_str());
        qInfo("%s, %s, %s", m_engine->version().c_str(), m_engine->kernels().c_str(),
              join_for_message(m_engine->devices()).c_str());
        // The library is opened once.
        auto again = load_engine();
        QVERIFY(again && *again == m_engine);
    }

    void agrees_with_reference_data()
    {
        QTest::addColumn<int>("layer");
        QTest::addColumn<QString>("variant");
        QTest::addColumn<QString>("device");
        QStringList devices{QStringLiteral("cpu")};
        if (auto engine = load_engine(); engine && (*engine)->has_cuda()) devices << QStringLiteral("cuda");
        for (const QString& device : devices)
            for (const char* variant : {"plain", "special"})
                for (int layer : {0, 1})
                    QTest::addRow("%s, %s, layer %d", qPrintable(device), variant, layer)
                        << layer << QString::fromLatin1(variant) << device;
    }
    void agrees_with_reference()
    {
        QFETCH(int, layer);
        QFETCH(QString, variant);
        QFETCH(QString, device);
        const Network model = m_bert.model(layer, variant == QLatin1String("special"));
        QVERIFY2(m_bert.fault().empty(), m_bert.fault().c_str());
        ForwardOptions options = grouped_options();
        options.device = device.toStdString();
        auto maps = m_engine->attention_maps(model, options, {});
        QVERIFY2(maps, maps ? "" : describe(maps.error()).c_str());

        const std::string name = variant.toStdString() + ".enc.layer" + std::to_string(layer);
        const double logits =
            relative_error(maps->layers.front().attention_logits, read_golden("bert", name + ".logits"));
        const double probabilities = relative_error(maps->layers.front().attention_probabilities,
                                                    read_golden("bert", name + ".probs"));
        QVERIFY2(logits < 1e-5, std::to_string(logits).c_str());
        QVERIFY2(probabilities < 1e-5, std::to_string(probabilities).c_str());
        QCOMPARE(maps->device, device == QLatin1String("cpu") ? std::string("cpu") : std::string("cuda:0"));
    }

    void groups_are_means_of_their_words()
    {
        const Network model = m_bert.model(1, false);
        const ForwardOptions options = grouped_options();
        auto maps = m_engine->attention_maps(model, options, {});
        QVERIFY(maps);
        QCOMPARE(maps->layers.front().group_attention_logits.shape(), (Shape{3, 4, length, length}));

        // Group 1 holds words 1, 4 and 7: the same run with those alone.
        Network part = model;
        part.word_rows = HostTensor(Shape{3, hidden});
        const std::vector<std::size_t> members{1, 4, 7};
        for (std::size_t n = 0; n < members.size(); ++n)
            std::copy_n(model.word_rows.data() + members[n] * hidden, hidden,
                        part.word_rows.data() + n * hidden);
        ForwardOptions one_group;
        one_group.group_of_word.assign(members.size(), 0);
        auto alone = m_engine->attention_maps(part, one_group, {});
        QVERIFY(alone);
        const std::size_t size = alone->layers.front().attention_logits.size();
        for (std::size_t n = 0; n < size; ++n) {
            const double group =
                static_cast<double>(maps->layers.front().group_attention_logits.values()[size + n]);
            QVERIFY(std::fabs(group - static_cast<double>(
                                          alone->layers.front().attention_logits.values()[n])) < 1e-5);
            const double likely =
                static_cast<double>(maps->layers.front().group_attention_probabilities.values()[size + n]);
            QVERIFY(std::fabs(likely - static_cast<double>(
                                           alone->layers.front().attention_probabilities.values()[n])) <
                    1e-6);
        }
    }

    void probabilities_are_left_out_when_not_asked_for()
    {
        ForwardOptions options = grouped_options();
        options.probabilities = false;
        auto maps = m_engine->attention_maps(m_bert.model(0, false), options, {});
        QVERIFY(maps);
        QVERIFY(maps->layers.front().attention_probabilities.empty());
        QVERIFY(maps->layers.front().group_attention_probabilities.empty());
        QVERIFY(!maps->layers.front().attention_logits.empty());
    }

    void causal_mask_hides_the_future()
    {
        Network model = m_bert.model(0, false);
        auto open = m_engine->attention_maps(model, grouped_options(), {});
        model.causal = true;
        auto masked = m_engine->attention_maps(model, grouped_options(), {});
        QVERIFY(open && masked);
        for (std::size_t head = 0; head < 4; ++head) {
            const MatrixView logits = masked->layers.front().attention_logits.matrix(head);
            const MatrixView logits_open = open->layers.front().attention_logits.matrix(head);
            const MatrixView probabilities = masked->layers.front().attention_probabilities.matrix(head);
            for (std::size_t i = 0; i < logits.rows; ++i) {
                double row_sum = 0.0;
                for (std::size_t j = 0; j < logits.cols; ++j) {
                    QCOMPARE(logits(i, j), logits_open(i, j));
                    if (j > i) QCOMPARE(probabilities(i, j), 0.0f);
                    row_sum += static_cast<double>(probabilities(i, j));
                }
                QVERIFY(std::fabs(row_sum - 1.0) < 1e-5);
            }
            QVERIFY(std::fabs(static_cast<double>(probabilities(0, 0)) - 1.0) < 1e-6);
        }
    }

    void activations_differ_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("known");
        for (const char* name :
             {"gelu", "gelu_new", "gelu_fast", "gelu_10", "gelu_pytorch_tanh", "quick_gelu", "relu", "relu2",
              "relu6", "leaky_relu", "silu", "swish", "mish", "sigmoid", "tanh", "linear", "laplace"})
            QTest::addRow("%s", name) << QString::fromLatin1(name) << true;
        QTest::addRow("unknown") << QStringLiteral("snake") << false;
    }
    void activations_differ()
    {
        QFETCH(QString, name);
        QFETCH(bool, known);
        Network model = m_bert.model(1, false);
        model.layers[0].activation = name.toStdString();
        auto maps = m_engine->attention_maps(model, grouped_options(), {});
        QCOMPARE(maps.has_value(), known);
        if (!known) {
            QCOMPARE(maps.error().code, ErrorCode::unsupported_model);
            QVERIFY(text(maps.error().message).contains(QStringLiteral("'snake'")));
            return;
        }
        // The exact GELU is what the reference was made with; the others must not be it.
        const double error = relative_error(maps->layers.front().attention_logits,
                                            read_golden("bert", "plain.enc.layer1.logits"));
        if (name == QLatin1String("gelu") || name == QLatin1String("gelu_10"))
            QVERIFY(error < 1e-5);
        else
            QVERIFY(error > 1e-6 && error < 10.0);
    }

    void wrong_input_is_refused_data()
    {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("named");
        const auto row = [](const char* fault, ErrorCode code, const char* named) {
            QTest::addRow("%s", fault)
                << QString::fromLatin1(fault) << static_cast<int>(code) << QString::fromLatin1(named);
        };
        row("device", ErrorCode::invalid_argument, "'tpu'");
        row("query shape", ErrorCode::shape_mismatch, "query matrix of layer 1");
        row("missing value", ErrorCode::shape_mismatch, "value matrix of layer 0");
        row("group", ErrorCode::invalid_argument, "group 7 of 3");
        row("empty group", ErrorCode::invalid_argument, "no word");
        row("special position", ErrorCode::invalid_argument, "position 17");
        row("NaN", ErrorCode::numeric_failure, "NaN");
    }
    void wrong_input_is_refused()
    {
        QFETCH(QString, fault);
        QFETCH(int, code);
        QFETCH(QString, named);
        Network model = m_bert.model(1, true);
        ForwardOptions options = grouped_options();
        if (fault == QLatin1String("device")) options.device = "tpu";
        if (fault == QLatin1String("query shape"))
            model.layers[1].query.weight = HostTensor(Shape{hidden, 31});
        if (fault == QLatin1String("missing value")) model.layers[0].value.weight = HostTensor();
        if (fault == QLatin1String("group")) options.group_of_word[2] = 7;
        if (fault == QLatin1String("empty group")) options.groups = 4;
        if (fault == QLatin1String("special position")) model.special_rows[1].position = length;
        if (fault == QLatin1String("NaN"))
            model.layers[0].query.weight.values()[5] = std::numeric_limits<float>::quiet_NaN();
        auto maps = m_engine->attention_maps(model, options, {});
        QVERIFY(!maps);
        QCOMPARE(static_cast<int>(maps.error().code), code);
        QVERIFY2(text(maps.error().message).contains(named), maps.error().message.c_str());
    }

    void stops_at_the_first_progress_call()
    {
        std::stop_source source;
        int calls = 0;
        RunContext ctx;
        ctx.stop = source.get_token();
        ctx.progress = [&](const Progress& now) {
            ++calls;
            QCOMPARE(now.stage, std::string_view("forward"));
            QCOMPARE(now.total, words.size() * 2);
            source.request_stop();
        };
        auto maps = m_engine->attention_maps(m_bert.model(1, false), grouped_options(), ctx);
        QVERIFY(!maps);
        QCOMPARE(maps.error().code, ErrorCode::cancelled);
        QCOMPARE(calls, 1);
    }

    void progress_grows_to_the_end()
    {
        std::size_t last = 0;
        std::size_t total = 0;
        bool grows = true;
        RunContext ctx;
        ctx.progress = [&](const Progress& now) {
            grows = grows && now.done >= last;
            last = now.done;
            total = now.total;
        };
        QVERIFY(m_engine->attention_maps(m_bert.model(1, false), grouped_options(), ctx));
        QVERIFY(grows);
        QCOMPARE(last, total);
    }

    void cuda_is_refused_where_there_is_none()
    {
        if (m_engine->has_cuda()) QSKIP("this machine has a GPU");
        ForwardOptions options = grouped_options();
        options.device = "cuda";
        auto maps = m_engine->attention_maps(m_bert.model(0, false), options, {});
        QVERIFY(!maps);
        QCOMPARE(maps.error().code, ErrorCode::invalid_argument);
        QVERIFY(text(maps.error().message).contains(QStringLiteral("CUDA")));
    }

private:
    Engine* m_engine = nullptr;
    TinyBert m_bert;
};

QTEST_APPLESS_MAIN(TestTorchEngine)
#include "tst_torch_engine.moc"
