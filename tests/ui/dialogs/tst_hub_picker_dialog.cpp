// SPDX-License-Identifier: GPL-3.0-or-later
// Choosing a model from the hub's cache or by its name, as a person does.
#include <QApplication>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QTest>

#include <filesystem>

#include "tests/support/checkpoint_builder.h"
#include "ui/dialogs/hub_picker_dialog.h"
#include "ui/models/cached_models_model.h"

namespace posiscope::ui {
namespace {

constexpr int patience_ms = 30'000; ///< debug builds on busy machines

/// A cache with two models, the larger one first by name.
struct Cache {
    tests::TemporaryFolder folder;

    Cache()
    {
        const tests::TemporaryFolder model;
        tests::CheckpointBuilder().write_to(model);
        const auto add = [&](const std::string& name, const std::string& commit, std::size_t bytes,
                             const std::string& family) {
            const std::string snapshot = "models--" + name + "/snapshots/" + commit + "/";
            folder.write(snapshot + "model.safetensors", std::string(bytes, 'x'));
            folder.write(snapshot + "config.json", "{\"model_type\":\"" + family + "\"}");
            folder.write("models--" + name + "/refs/main", commit);
        };
        add("org--alpha", "aaaa", 30'000, "bert");
        add("org--beta", "bbbb", 4'000, "t5");
    }
};

/// A dialog that has read what HF_HUB_CACHE says, and is shown.
struct Shown {
    HubPickerDialog dialog;
    QSignalSpy chosen{&dialog, &HubPickerDialog::chosen};

    Shown()
    {
        dialog.show();
        for (int k = 0; k < patience_ms / 10 && dialog.isBusy(); ++k) QTest::qWait(10);
    }
    [[nodiscard]] QString cell(int row, int column) const
    {
        return dialog.table()->model()->index(row, column).data().toString();
    }
};

} // namespace

class TestHubPickerDialog : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "HF_ENDPOINT", "HF_TOKEN", "HF_HUB_OFFLINE"})
            qunsetenv(name);
    }

    void the_models_are_listed_and_searched()
    {
        const Cache cache;
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(cache.folder.path()));
        Shown shown;
        QCOMPARE(shown.dialog.message(), QString());
        QCOMPARE(shown.dialog.table()->model()->rowCount(), 2);
        QCOMPARE(shown.cell(0, CachedModelsModel::name_column), QStringLiteral("org/alpha"));
        QCOMPARE(shown.cell(0, CachedModelsModel::family_column), QStringLiteral("bert"));
        QCOMPARE(shown.cell(0, CachedModelsModel::size_column), QStringLiteral("30.0\u00A0kB"));
        QCOMPARE(shown.cell(0, CachedModelsModel::revision_column), QStringLiteral("main"));
        shown.dialog.table()->sortByColumn(CachedModelsModel::size_column, Qt::AscendingOrder);
        QCOMPARE(shown.cell(0, CachedModelsModel::name_column), QStringLiteral("org/beta"));

        // By family, too; Return opens what is found.
        QTest::keyClicks(shown.dialog.search(), QStringLiteral("BERT"));
        QCOMPARE(shown.dialog.table()->model()->rowCount(), 1);
        QTest::keyClick(shown.dialog.search(), Qt::Key_Return);
        QCOMPARE(shown.chosen.size(), 1);
        QCOMPARE(shown.chosen.first().first().toString().toStdString(),
                 cache.folder.file("models--org--alpha"));
        QVERIFY(!shown.dialog.isVisible());
    }

    void a_search_without_a_match_says_so()
    {
        const Cache cache;
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(cache.folder.path()));
        Shown shown;
        QTest::keyClicks(shown.dialog.search(), QStringLiteral("gamma"));
        QVERIFY(shown.dialog.message().contains(QStringLiteral("gamma")));
        QVERIFY(!shown.dialog.openButton()->isEnabled());
        QTest::keyClick(shown.dialog.search(), Qt::Key_Return);
        QCOMPARE(shown.chosen.size(), 0);
        shown.dialog.search()->clear();
        QCOMPARE(shown.dialog.message(), QString());
        QVERIFY(shown.dialog.openButton()->isEnabled());
    }

    void a_double_click_and_the_keys_open()
    {
        const Cache cache;
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(cache.folder.path()));
        {
            Shown shown;
            QTableView* table = shown.dialog.table();
            const QPoint second = table->visualRect(table->model()->index(1, 0)).center();
            QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, second);
            QTest::mouseDClick(table->viewport(), Qt::LeftButton, {}, second);
            QCOMPARE(shown.chosen.size(), 1);
            QCOMPARE(shown.chosen.first().first().toString().toStdString(),
                     cache.folder.file("models--org--beta"));
        }
        Shown shown;
        QTest::keyClick(shown.dialog.search(), Qt::Key_Down); // from the field into the list
        QTest::keyClick(shown.dialog.search(), Qt::Key_Return);
        QCOMPARE(shown.chosen.size(), 1);
        QCOMPARE(shown.chosen.first().first().toString().toStdString(),
                 cache.folder.file("models--org--beta"));
    }

    void a_cache_that_is_not_there_says_where_it_was_looked_for()
    {
        const tests::TemporaryFolder folder;
        qputenv("HF_HOME", QByteArray::fromStdString(folder.file("nowhere")));
        Shown shown;
        QVERIFY2(shown.dialog.message().contains(QString::fromStdString(folder.file("nowhere/hub"))),
                 qPrintable(shown.dialog.message()));
        for (const QString& part :
             {QStringLiteral("does not exist"), QStringLiteral("HF_HUB_CACHE"), QStringLiteral("HF_HOME")})
            QVERIFY2(shown.dialog.message().contains(part), qPrintable(shown.dialog.message()));
        QVERIFY(!shown.dialog.openButton()->isEnabled());
        QVERIFY(!shown.dialog.search()->isEnabled());
        // The network is another matter.
        QTest::keyClicks(shown.dialog.address(), QStringLiteral("org/name"));
        QVERIFY(shown.dialog.openAddressButton()->isEnabled());
    }

    void an_empty_cache_says_so()
    {
        const tests::TemporaryFolder folder;
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(folder.path()));
        Shown shown;
        QVERIFY2(shown.dialog.message().contains(QStringLiteral("no models")),
                 qPrintable(shown.dialog.message()));
    }

    void a_name_on_the_hub_is_opened()
    {
        const Cache cache;
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(cache.folder.path()));
        {
            Shown shown;
            QVERIFY(!shown.dialog.openAddressButton()->isEnabled());
            QTest::keyClicks(shown.dialog.address(), QStringLiteral("org/name@v1.0"));
            QTest::keyClick(shown.dialog.address(), Qt::Key_Return); // never the list's selection
            QCOMPARE(shown.chosen.size(), 1);
            QCOMPARE(shown.chosen.first().first().toString(), QStringLiteral("hf://org/name@v1.0"));
        }
        Shown shown;
        QTest::keyClick(shown.dialog.address(), Qt::Key_Return); // nothing typed: nothing opened
        QCOMPARE(shown.chosen.size(), 0);
        QTest::keyClicks(shown.dialog.address(), QStringLiteral("hf://org/na me"));
        QCOMPARE(shown.dialog.addressFault(), QString()); // half an address is no fault yet
        QTest::mouseClick(shown.dialog.openAddressButton(), Qt::LeftButton);
        QCOMPARE(shown.chosen.size(), 0);
        QVERIFY(shown.dialog.isVisible());
        QVERIFY2(shown.dialog.addressFault().contains(QStringLiteral("hf://org/name")),
                 qPrintable(shown.dialog.addressFault()));
        shown.dialog.address()->clear();
        QCOMPARE(shown.dialog.addressFault(), QString());
    }

    void what_is_typed_becomes_a_location_data()
    {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<QString>("location"); ///< empty: refused
        const auto row = [](const char* name, const char* typed, const char* location) {
            QTest::newRow(name) << QString::fromUtf8(typed) << QString::fromUtf8(location);
        };
        row("name", " bert-base-uncased ", "hf://bert-base-uncased");
        row("hub", "hf://org/name@rev", "hf://org/name@rev");
        row("address", "https://example.org/m/model.safetensors", "https://example.org/m/model.safetensors");
        row("secret query", "https://example.org/m/model.safetensors?token=x",
            "https://example.org/m/model.safetensors");
        row("loopback", "http://127.0.0.1:8000/model.safetensors", "http://127.0.0.1:8000/model.safetensors");
        row("plain http", "http://example.org/model.safetensors", "");
        row("ftp", "ftp://example.org/model.safetensors", "");
        row("three parts are a file", "org/name/model.safetensors", "hf://org/name/model.safetensors");
        row("up", "../../etc/passwd", "");
    }
    void what_is_typed_becomes_a_location()
    {
        QFETCH(QString, typed);
        QFETCH(QString, location);
        const auto found = remote_location_of(typed);
        QCOMPARE(found ? QString::fromStdString(*found) : QString(), location);
    }

    void the_token_is_never_shown()
    {
        const Cache cache;
        qputenv("HF_HUB_CACHE", QByteArray::fromStdString(cache.folder.path()));
        qputenv("HF_TOKEN", "hf_secret");
        Shown shown;
        for (const QLabel* label : shown.dialog.findChildren<QLabel*>())
            QVERIFY(!label->text().contains(QStringLiteral("hf_secret")));
    }
};

} // namespace posiscope::ui

QTEST_MAIN(posiscope::ui::TestHubPickerDialog)
#include "tst_hub_picker_dialog.moc"
