// SPDX-License-Identifier: GPL-3.0-or-later
#include <QTemporaryDir>
#include <QTest>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/model/engine.h"
#include "core/model/engine_library.h"

using namespace posiscope::core;

namespace {

class NamedEngine final : public Engine {
public:
    [[nodiscard]] std::string version() const override { return "none"; }
    [[nodiscard]] std::string kernels() const override { return "none"; }
    [[nodiscard]] std::vector<std::string> devices() const override { return {"cpu"}; }
    [[nodiscard]] bool has_cuda() const override { return false; }
    [[nodiscard]] std::vector<std::string> warnings() const override { return {}; }
    Result<ForwardResult> attention_maps(const Network&, const ForwardOptions&, const RunContext&) override
    {
        return ForwardResult{};
    }
};

} // namespace

class TestEngineLoader : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void looks_beside_the_program_and_in_lib()
    {
        const auto folders = engine_library_folders();
        QCOMPARE(folders.size(), std::size_t{3});
        QCOMPARE(folders[1].filename(), std::filesystem::path("lib"));
        QCOMPARE(folders[0].parent_path(), folders[1].parent_path());
        QCOMPARE(folders[2], folders[1] / "posiscope");
    }

    void a_missing_library_is_named_with_the_folders()
    {
        const QTemporaryDir folder;
        auto opened = open_engine_library({std::filesystem::path(folder.path().toStdString())});
        QVERIFY(!opened);
        QCOMPARE(opened.error().code, ErrorCode::not_found);
        const QString message = QString::fromStdString(opened.error().message);
        QVERIFY(message.contains(QStringLiteral("libposiscope_engine.so")));
        QVERIFY(message.contains(folder.path()));
    }

    void a_file_that_is_no_library_gives_the_loaders_reason()
    {
        const QTemporaryDir folder;
        const std::filesystem::path place(folder.path().toStdString());
        std::ofstream(place / engine_library_name) << "not a library";
        auto opened = open_engine_library({place});
        QVERIFY(!opened);
        QCOMPARE(opened.error().code, ErrorCode::not_found);
        QVERIFY(QString::fromStdString(opened.error().message).contains(QStringLiteral("does not load: ")));
    }

    void knows_which_kernels_use_avx2()
    {
        for (const char* name : {"Haswell", "Zen", "SkylakeX", "SKYLAKEX", "Cooperlake"})
            QVERIFY2(kernels_use_avx2(name), name);
        for (const char* name : {"Prescott", "Barcelona", "Nehalem", "Sandybridge", ""})
            QVERIFY2(!kernels_use_avx2(name), name);
        for (const char* name : {"SkylakeX", "SKYLAKEX", "Cooperlake", "SapphireRapids"}) {
            QVERIFY2(kernels_use_avx512(name), name);
            QVERIFY2(kernels_use_avx2(name), name);
        }
        for (const char* name : {"Haswell", "Zen", "Skylake", "Prescott", ""})
            QVERIFY2(!kernels_use_avx512(name), name);
    }

    void an_installed_engine_takes_the_librarys_place()
    {
        const auto engine = std::make_shared<NamedEngine>();
        install_engine(engine);
        auto loaded = load_engine();
        install_engine(nullptr);
        QVERIFY(loaded);
        QVERIFY(*loaded == engine.get());
    }
};

QTEST_APPLESS_MAIN(TestEngineLoader)
#include "tst_engine_loader.moc"
