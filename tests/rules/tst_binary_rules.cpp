// SPDX-License-Identifier: GPL-3.0-or-later
// Looks at what was built: which libraries the programs need, and what the kernels' object files define.
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTest>

namespace {

/// What a tool of binutils or of the C library says, in the C locale; empty where it fails.
QString output_of(const QString& program, const QStringList& arguments)
{
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert(QStringLiteral("LC_ALL"), QStringLiteral("C"));
    process.setProcessEnvironment(environment);
    process.start(program, arguments);
    if (!process.waitForFinished(60'000) || process.exitCode() != 0) return {};
    return QString::fromUtf8(process.readAllStandardOutput());
}

/// The names of all libraries that a program loads at start, its libraries' own included.
QStringList libraries_of(const QString& program)
{
    static const QRegularExpression name(QStringLiteral("^\\s*(?:\\S*/)?(lib[^\\s/]+)\\s"),
                                         QRegularExpression::MultilineOption);
    QStringList libraries;
    for (auto matches = name.globalMatch(output_of(QStringLiteral("ldd"), {program})); matches.hasNext();)
        libraries.append(matches.next().captured(1));
    return libraries;
}

QStringList starting_with(const QStringList& libraries, const QStringList& beginnings)
{
    QStringList found;
    for (const QString& library : libraries)
        for (const QString& beginning : beginnings)
            if (library.startsWith(beginning)) found.append(library);
    return found;
}

const QStringList torch_libraries{QStringLiteral("libtorch"), QStringLiteral("libc10"),
                                  QStringLiteral("libblas"), QStringLiteral("libopenblas"),
                                  QStringLiteral("libposiscope_engine")};

/// Weak symbols of an object file that another object file could define too.
QStringList shared_weak_symbols(const QString& demangled_names, const QString& set)
{
    QStringList found;
    for (const QString& line : demangled_names.split(QLatin1Char('\n'))) {
        // "0000000000000000 W Eigen_v3::internal::..."
        static const QRegularExpression symbol(QStringLiteral("^[0-9a-f]+ ([WVu]) (.*)$"));
        const auto match = symbol.match(line);
        if (!match.hasMatch()) continue;
        const QString name = match.captured(2);
        // The reference to the exception personality is data that holds an address, not code.
        if (name.startsWith(QLatin1String("DW.ref."))) continue;
        if (!name.contains(QStringLiteral("Eigen_") + set + QStringLiteral("::"))) found.append(name);
    }
    return found;
}

} // namespace

class TestBinaryRules : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        for (const char* tool : {"ldd", "nm"})
            QVERIFY2(!QStandardPaths::findExecutable(QString::fromLatin1(tool)).isEmpty(), tool);
    }

    void the_command_line_needs_neither_qt_nor_torch()
    {
        const QStringList libraries = libraries_of(QStringLiteral(POSISCOPE_CLI_FILE));
        QVERIFY(!starting_with(libraries, {QStringLiteral("libc.so")}).isEmpty());
        const QStringList forbidden = starting_with(
            libraries,
            torch_libraries + QStringList{QStringLiteral("libQt"), QStringLiteral("libqcustomplot"),
                                          QStringLiteral("libX11"), QStringLiteral("libxcb")});
        QVERIFY2(forbidden.isEmpty(), qPrintable(forbidden.join(QLatin1Char(' '))));
    }

    void the_window_does_not_load_torch_at_start()
    {
        const QString window = QStringLiteral(POSISCOPE_WINDOW_FILE);
        if (window.isEmpty()) QSKIP("built without the window");
        const QStringList libraries = libraries_of(window);
        QVERIFY(!starting_with(libraries, {QStringLiteral("libQt6Widgets")}).isEmpty());
        const QStringList forbidden = starting_with(libraries, torch_libraries);
        QVERIFY2(forbidden.isEmpty(), qPrintable(forbidden.join(QLatin1Char(' '))));
    }

    /// Torch's libraries come from one folder: two LibTorch mixed end in an assertion at start.
    void the_engine_takes_all_of_torch_from_one_folder()
    {
        const QString engine = QStringLiteral(POSISCOPE_ENGINE_FILE);
        if (engine.isEmpty()) QSKIP("built without the engine");
        static const QRegularExpression line(QStringLiteral("(lib(?:torch|c10)\\S*) => (\\S+)/[^/\\s]+ "));
        QStringList folders;
        int found = 0;
        for (auto matches = line.globalMatch(output_of(QStringLiteral("ldd"), {engine}));
             matches.hasNext();) {
            const auto match = matches.next();
            ++found;
            const QString folder = QFileInfo(match.captured(2)).canonicalFilePath();
            if (!folders.contains(folder)) folders.append(folder);
        }
        QVERIFY(found >= 3);
        QVERIFY2(folders.size() == 1, qPrintable(folders.join(QLatin1Char(' '))));
        QVERIFY2(folders.first() == QFileInfo(QStringLiteral(POSISCOPE_TORCH_FOLDER)).canonicalFilePath(),
                 qPrintable(folders.first()));
    }

    void a_shared_weak_symbol_is_seen()
    {
        const QString names = QStringLiteral("0000000000000000 W Eigen_v3::internal::run()\n"
                                             "0000000000000010 T posiscope::core::kernels_v3()\n"
                                             "0000000000000000 V DW.ref.__gxx_personality_v0\n"
                                             "                 U std::sort(float*, float*)\n");
        QVERIFY(shared_weak_symbols(names, QStringLiteral("v3")).isEmpty());
        QCOMPARE(shared_weak_symbols(names, QStringLiteral("v4")).size(), 1);
        const QString leaking =
            QStringLiteral("0000000000000020 W std::vector<float>::_M_grow(unsigned long)\n");
        QCOMPARE(shared_weak_symbols(leaking, QStringLiteral("v3")).size(), 1);
    }

    /// An inline function of the standard library compiled with wide instructions must not reach the linker: it may
    /// keep that copy for the whole program, which then stops on an older processor.
    void kernels_leak_no_wide_code_data()
    {
        QTest::addColumn<QString>("set");
        QTest::addColumn<QString>("object");
        const QStringList entries =
            QStringLiteral(POSISCOPE_KERNEL_OBJECTS).split(QLatin1Char('|'), Qt::SkipEmptyParts);
        if (entries.isEmpty()) QTest::addRow("none") << QString() << QString();
        for (const QString& entry : entries) {
            const qsizetype at = entry.indexOf(QLatin1Char('='));
            QTest::addRow("%s, %s", qPrintable(entry.left(at)), qPrintable(QFileInfo(entry).fileName()))
                << entry.left(at) << entry.mid(at + 1);
        }
    }
    void kernels_leak_no_wide_code()
    {
        QFETCH(QString, set);
        QFETCH(QString, object);
        if (object.isEmpty()) QSKIP("this processor family has one set of kernels");
        const QString names = output_of(QStringLiteral("nm"), {QStringLiteral("-C"), object});
        QVERIFY(names.contains(QLatin1String("posiscope::core::")));
        const QStringList leaks = shared_weak_symbols(names, set);
        QVERIFY2(leaks.isEmpty(), qPrintable(leaks.join(QLatin1Char('\n'))));
    }
};

QTEST_APPLESS_MAIN(TestBinaryRules)
#include "tst_binary_rules.moc"
