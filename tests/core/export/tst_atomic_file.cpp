// SPDX-License-Identifier: GPL-3.0-or-later
#include <csignal>
#include <string>

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QFileInfo>
#include <QIODevice>
#include <QTest>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/run_context.h"
#include "core/export/atomic_file.h"

namespace posiscope::core {
namespace {

std::string content(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string("(missing)");
}

QStringList names_in(const QTemporaryDir& folder)
{
    return QDir(folder.path())
        .entryList(QDir::AllEntries | QDir::Hidden | QDir::System | QDir::NoDotAndDotDot);
}

} // namespace

class AtomicFile : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void writes_and_replaces()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("table.csv");
        QVERIFY(write_atomically(path.toStdString(), "first").has_value());
        QCOMPARE(content(path), std::string("first"));
        QVERIFY(write_atomically(path.toStdString(), std::string("\0second\n", 8)).has_value());
        QCOMPARE(content(path), std::string("\0second\n", 8));
        QVERIFY(write_atomically(path.toStdString(), "").has_value());
        QCOMPARE(content(path), std::string());
        QCOMPARE(names_in(folder), QStringList{"table.csv"});
    }

    void what_is_written_in_pieces_is_whole_or_not_there()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("table.csv");
        const auto good = write_atomically(path.toStdString(), [](const ByteSink& sink) -> Result<void> {
            if (auto done = sink("one, "); !done) return done;
            return sink("two");
        });
        QVERIFY(good.has_value());
        QCOMPARE(content(path), std::string("one, two"));
        const auto broken_off =
            write_atomically(path.toStdString(), [](const ByteSink& sink) -> Result<void> {
                if (auto done = sink("half"); !done) return done;
                return cancelled_error("the test");
            });
        QVERIFY(!broken_off.has_value());
        QCOMPARE(broken_off.error().code, ErrorCode::cancelled);
        QCOMPARE(content(path), std::string("one, two"));
        QCOMPARE(names_in(folder), QStringList{"table.csv"});
    }

    void keeps_permissions()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("table.csv");
        QVERIFY(write_atomically(path.toStdString(), "first").has_value());
        QCOMPARE(::chmod(path.toLocal8Bit().constData(), 0640), 0);
        QVERIFY(write_atomically(path.toStdString(), "second").has_value());
        struct stat status {};
        QCOMPARE(::stat(path.toLocal8Bit().constData(), &status), 0);
        QCOMPARE(status.st_mode & 0777u, 0640u);
    }

    void follows_links()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("real.csv");
        const QString link = folder.filePath("link.csv");
        QVERIFY(write_atomically(path.toStdString(), "first").has_value());
        QVERIFY(QFile::link("real.csv", link));
        QVERIFY(write_atomically(link.toStdString(), "second").has_value());
        QCOMPARE(content(path), std::string("second"));
        QVERIFY(QFileInfo(link).isSymLink());
    }

    void says_what_is_wrong()
    {
        QTemporaryDir folder;
        const auto missing = write_atomically(folder.filePath("none/table.csv").toStdString(), "x");
        QVERIFY(!missing.has_value());
        QCOMPARE(missing.error().code, ErrorCode::not_found);
        QVERIFY(missing.error().message.find("none/table.csv") != std::string::npos);
        const auto into_folder = write_atomically(folder.path().toStdString(), "x");
        QVERIFY(!into_folder.has_value());
        QCOMPARE(into_folder.error().code, ErrorCode::unreadable);
        QVERIFY(names_in(folder).isEmpty());
    }

    /// A full disk, played by a limit on the size of files.
    void old_file_stays_when_writing_fails()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath("table.csv");
        QVERIFY(write_atomically(path.toStdString(), "first").has_value());
        struct rlimit before {};
        QCOMPARE(::getrlimit(RLIMIT_FSIZE, &before), 0);
        const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
        struct rlimit small = before;
        small.rlim_cur = 1000;
        QCOMPARE(::setrlimit(RLIMIT_FSIZE, &small), 0);
        const auto failed = write_atomically(path.toStdString(), std::string(5000, 'x'));
        ::setrlimit(RLIMIT_FSIZE, &before);
        ::signal(SIGXFSZ, old_handler);
        QVERIFY(!failed.has_value());
        QCOMPARE(failed.error().code, ErrorCode::unreadable);
        QCOMPARE(content(path), std::string("first"));
        QCOMPARE(names_in(folder), QStringList{"table.csv"});
    }

    void protected_file_stays()
    {
        if (::geteuid() == 0) QSKIP("nothing is protected from root");
        QTemporaryDir folder;
        const QString path = folder.filePath("table.csv");
        QVERIFY(write_atomically(path.toStdString(), "first").has_value());
        QCOMPARE(::chmod(path.toLocal8Bit().constData(), 0440), 0);
        QVERIFY(!write_atomically(path.toStdString(), "second").has_value());
        QCOMPARE(content(path), std::string("first"));
    }

    void devices_are_written_to()
    {
        QVERIFY(write_atomically("/dev/null", "gone").has_value());
        struct stat status {};
        QCOMPARE(::stat("/dev/null", &status), 0);
        QVERIFY(S_ISCHR(status.st_mode)); // still there
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::AtomicFile)
#include "tst_atomic_file.moc"
