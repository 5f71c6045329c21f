// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>
#include <vector>

#include <QFloat16> // JSON asks what it can become
#include <QTest>

#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/export/provenance.h"
#include "core/probe/identical_word_probe.h"
#include "tests/support/checkpoint_builder.h"

namespace posiscope::core {

class TestProvenance : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void every_setting_is_recorded()
    {
        const tests::TemporaryFolder folder;
        tests::CheckpointBuilder().write_to(folder);
        const auto model = *open_model(folder.path(), {});
        ProbeOptions options;
        options.length = 11;
        options.variant = InputVariant::special;
        options.words.count = 5;
        options.seed = 18446744073709551615u;
        options.no_positions = true;
        const auto probe = run_identical_word_probe(*model, options, {});
        const auto object = provenance(*model, *probe);
        QCOMPARE(object.at("program").get<std::string>(), std::string("Posiscope ") + version);
        const auto& checkpoint = object.at("checkpoint");
        QCOMPARE(checkpoint.at("location").get<std::string>(), folder.path());
        QCOMPARE(checkpoint.at("name").get<std::string>(), model->checkpoint->display_name());
        QCOMPARE(checkpoint.at("format").get<std::string>(), std::string("safetensors"));
        QCOMPARE(checkpoint.at("file_size").get<std::uint64_t>(), model->checkpoint->file_size());
        QCOMPARE(checkpoint.at("family").get<std::string>(), std::string("bert"));
        QCOMPARE(checkpoint.at("scheme").get<std::string>(), std::string("absolute_learned"));
        const auto& settings = object.at("settings");
        QCOMPARE(settings.at("stack").get<std::string>(), std::string("encoder"));
        QCOMPARE(settings.at("layer").get<int>(), 0);
        QCOMPARE(settings.at("length").get<int>(), 11);
        QCOMPARE(settings.at("input").get<std::string>(), std::string("special"));
        QCOMPARE(settings.at("words").get<std::string>(), std::string("sampled"));
        QCOMPARE(settings.at("seed").get<std::uint64_t>(), options.seed);
        QCOMPARE(settings.at("no_positions").get<bool>(), true);
        QCOMPARE(object.at("word_ids").get<std::vector<std::int64_t>>(), probe->word_ids);
        QCOMPARE(object.at("groups").get<int>(), 5);
        QCOMPARE(object.at("way").get<std::string>(), std::string("closed_form"));
        QCOMPARE(object.at("device").get<std::string>(), std::string("cpu"));
        QCOMPARE(object.at("kernels").get<std::string>(), probe->kernels);
    }

    void a_result_can_be_made_again_from_it()
    {
        const tests::TemporaryFolder folder;
        tests::CheckpointBuilder().write_to(folder);
        const auto model = *open_model(folder.path(), {});
        ProbeOptions options;
        options.length = 8;
        options.words.count = 7;
        options.seed = 3;
        const auto probe = run_identical_word_probe(*model, options, {});
        const auto object = provenance(*model, *probe);

        ProbeOptions again;
        again.length = object.at("settings").at("length").get<std::int64_t>();
        again.words.kind = WordSelection::Kind::listed;
        again.words.ids = object.at("word_ids").get<std::vector<std::int64_t>>();
        const auto opened = *open_model(object.at("checkpoint").at("location").get<std::string>(), {});
        const auto repeated = run_identical_word_probe(*opened, again, {});
        const auto a = std::as_const(probe->attention_logits).values();
        const auto b = std::as_const(repeated->attention_logits).values();
        QVERIFY(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestProvenance)
#include "tst_provenance.moc"
