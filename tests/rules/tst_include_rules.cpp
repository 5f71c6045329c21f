// SPDX-License-Identifier: GPL-3.0-or-later
// Holds the tree against the rules that keep core, window and engine apart (CONTRIBUTING.md, "Layers").
#include <QDir>
#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <QTest>

#include <array>
#include <optional>
#include <string_view>

namespace {

/// Folders of core from the lowest layer to the highest. Folders of one rank do not include each other.
struct Layer {
    std::string_view folder;
    int rank;
};
constexpr std::array layers{
    Layer{"base", 0},       Layer{"tensor", 1},  Layer{"kernels", 2}, Layer{"checkpoint", 3},
    Layer{"position", 3},   Layer{"model", 4},   Layer{"probe", 5},   Layer{"metrics", 6},
    Layer{"projection", 6}, Layer{"session", 7}, Layer{"export", 8},
};

std::optional<int> rank_of(const QString& folder)
{
    for (const Layer& layer : layers)
        if (folder == QLatin1String(layer.folder.data(), static_cast<qsizetype>(layer.folder.size())))
            return layer.rank;
    return std::nullopt;
}

bool is_torch(const QString& include)
{
    static const QRegularExpression torch(QStringLiteral("^(ATen|c10|torch|caffe2)/"));
    return torch.match(include).hasMatch();
}

bool is_qt(const QString& include)
{
    static const QRegularExpression qt(
        QStringLiteral("^(Qt[A-Z][A-Za-z]*/.*|Q[A-Z][A-Za-z0-9]*|q[a-z]+\\.h)$"));
    return qt.match(include).hasMatch() && include != QLatin1String("qcustomplot.h");
}

struct Include {
    QString name;
    bool quoted = false;
};

QList<Include> includes_of(const QString& text)
{
    static const QRegularExpression line(QStringLiteral("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]"),
                                         QRegularExpression::MultilineOption);
    QList<Include> found;
    for (auto matches = line.globalMatch(text); matches.hasNext();) {
        const auto match = matches.next();
        found.append({match.captured(2), match.captured(1) == QLatin1String("\"")});
    }
    return found;
}

/// What is wrong with one include line of the file `path` (relative to the root); empty: nothing.
QString include_fault(const QString& path, const Include& include)
{
    const QStringList place = path.split(QLatin1Char('/'));
    const QString& top = place.first();
    const bool in_engine = path.startsWith(QLatin1String("core/engine/"));
    const bool in_core = top == QLatin1String("core");

    if (is_torch(include.name) && !in_engine) return QStringLiteral("torch is included by core/engine only");
    if (include.name == QLatin1String("torch/torch.h") || include.name == QLatin1String("ATen/ATen.h"))
        return QStringLiteral("single ATen headers are included, not the whole of torch");
    if (is_qt(include.name) && in_core) return QStringLiteral("core knows no Qt");
    if (include.name == QLatin1String("qcustomplot.h") && !path.startsWith(QLatin1String("ui/plot/")))
        return QStringLiteral("qcustomplot.h is included by ui/plot only");
    if (!include.quoted) return {};

    const QStringList target = include.name.split(QLatin1Char('/'));
    if (include.name.endsWith(QLatin1String(".moc"))) return {};
    if (target.size() < 2 || !QStringList{QStringLiteral("core"), QStringLiteral("ui"), QStringLiteral("app"),
                                          QStringLiteral("tests")}
                                  .contains(target.first()))
        return QStringLiteral("own headers are included from the root of the tree");

    // tests may include everything; nothing includes them.
    if (top == QLatin1String("tests")) return {};
    if (target.first() == QLatin1String("tests")) return QStringLiteral("the programs do not include tests");
    if (include.name.startsWith(QLatin1String("core/engine/")) && !in_engine)
        return QStringLiteral("the engine is opened on demand, nothing includes it");
    if (in_core && target.first() != QLatin1String("core"))
        return QStringLiteral("core knows neither ui nor app");
    if (top == QLatin1String("ui") && target.first() == QLatin1String("app"))
        return QStringLiteral("ui does not know app");
    if (!in_core || place.size() < 3 || target.size() < 3) return {};

    const QString& from = place.at(1);
    const QString& to = target.at(1);
    if (from == to) return {};
    if (in_engine)
        return QStringList{QStringLiteral("base"), QStringLiteral("tensor"), QStringLiteral("kernels"),
                           QStringLiteral("model")}
                       .contains(to)
                   ? QString()
                   : QStringLiteral("the engine includes base, tensor, kernels and model only");
    const auto from_rank = rank_of(from);
    const auto to_rank = rank_of(to);
    if (!from_rank) return QStringLiteral("core/%1 has no place in the order of layers").arg(from);
    if (!to_rank) return QStringLiteral("core/%1 has no place in the order of layers").arg(to);
    if (*to_rank >= *from_rank) return QStringLiteral("core/%1 is a lower layer than core/%2").arg(from, to);
    return {};
}

/// What is wrong with the first lines of a file; empty: nothing.
QString head_fault(const QString& path, const QString& text)
{
    constexpr qsizetype lines_looked_at = 3;
    const QStringList lines = text.split(QLatin1Char('\n')).mid(0, lines_looked_at);
    const bool script = lines.first().startsWith(QLatin1String("#!"));
    const bool markup = lines.first().startsWith(QLatin1String("<?xml"));
    const QString& place = (script || markup) && lines.size() > 1 ? lines.at(1) : lines.first();
    if (!place.contains(QLatin1String("SPDX-License-Identifier: GPL-3.0-or-later")))
        return QStringLiteral("the first line is no SPDX line");
    if (path.endsWith(QLatin1String(".h")) && !text.contains(QLatin1String("\n#pragma once\n")))
        return QStringLiteral("a header has no #pragma once");
    return {};
}

QString text_of(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

/// The files of our own that hold code, relative to the root.
QStringList own_files()
{
    const QDir root(QStringLiteral(POSISCOPE_SOURCE_DIR));
    static const QRegularExpression code(
        QStringLiteral("(\\.(cpp|h|h\\.in|cmake|py|sh)|/CMakeLists\\.txt|^CMakeLists\\.txt)$"));
    QStringList files{QStringLiteral("CMakeLists.txt")};
    for (const char* folder : {"core", "ui", "app", "tests", "cmake", "packaging", "scripts", ".ci"}) {
        QDirIterator each(root.filePath(QString::fromLatin1(folder)), QDir::Files | QDir::Hidden,
                          QDirIterator::Subdirectories);
        while (each.hasNext()) {
            const QString path = root.relativeFilePath(each.next());
            if (path.startsWith(QLatin1String("tests/data/"))) continue;
            if (path.startsWith(QLatin1String("scripts/")) || path.startsWith(QLatin1String(".ci/")) ||
                code.match(path).hasMatch())
                files.append(path);
        }
    }
    files.sort();
    return files;
}

bool is_source(const QString& path)
{
    return path.endsWith(QLatin1String(".cpp")) || path.endsWith(QLatin1String(".h"));
}

} // namespace

class TestIncludeRules : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// The rules themselves: each is broken once here, so that a rule that lets everything pass is seen.
    void a_broken_rule_is_seen_data()
    {
        QTest::addColumn<QString>("path");
        QTest::addColumn<QString>("line");
        QTest::addColumn<bool>("allowed");
        const auto row = [](const char* path, const char* line, bool allowed) {
            QTest::addRow("%s: %s", path, line)
                << QString::fromLatin1(path) << QString::fromLatin1(line) << allowed;
        };
        row("core/probe/a.cpp", "#include \"core/model/b.h\"", true);
        row("core/probe/a.cpp", "#include \"core/probe/b.h\"", true);
        row("core/probe/a.cpp", "#include <vector>", true);
        row("core/model/a.cpp", "#include \"core/probe/b.h\"", false);
        row("core/position/a.cpp", "#include \"core/checkpoint/b.h\"", false);
        row("core/metrics/a.cpp", "#include \"core/projection/b.h\"", false);
        row("core/unknown/a.cpp", "#include \"core/base/b.h\"", false);
        row("core/base/a.cpp", "#include <QString>", false);
        row("core/base/a.cpp", "#include <QtCore/QString>", false);
        row("core/base/a.cpp", "#  include <qglobal.h>", false);
        row("core/base/a.cpp", "#include \"ui/b.h\"", false);
        row("core/model/a.cpp", "#include <ATen/core/Tensor.h>", false);
        row("core/engine/a.cpp", "#include <ATen/core/Tensor.h>", true);
        row("core/engine/a.cpp", "#include <ATen/ATen.h>", false);
        row("core/engine/a.cpp", "#include \"core/model/engine.h\"", true);
        row("core/engine/a.cpp", "#include \"core/probe/b.h\"", false);
        row("core/model/a.cpp", "#include \"core/engine/b.h\"", false);
        row("ui/views/a.cpp", "#include <c10/util/Exception.h>", false);
        row("ui/views/a.cpp", "#include <qcustomplot.h>", false);
        row("ui/plot/a.cpp", "#include <qcustomplot.h>", true);
        row("ui/plot/a.cpp", "#include <QWidget>", true);
        row("ui/views/a.cpp", "#include \"heatmap_view.h\"", false);
        row("ui/views/a.cpp", "#include \"app/b.h\"", false);
        row("ui/views/a.cpp", "#include \"tests/support/b.h\"", false);
        row("tests/ui/tst_a.cpp", "#include \"tst_a.moc\"", true);
    }
    void a_broken_rule_is_seen()
    {
        QFETCH(QString, path);
        QFETCH(QString, line);
        QFETCH(bool, allowed);
        const auto includes = includes_of(QStringLiteral("// first\n") + line + QStringLiteral("\n"));
        QCOMPARE(includes.size(), 1);
        const QString fault = include_fault(path, includes.first());
        QVERIFY2(fault.isEmpty() == allowed, qPrintable(fault));
    }

    void a_bad_head_is_seen()
    {
        const QString spdx = QStringLiteral("// SPDX-License-Identifier: GPL-3.0-or-later\n");
        QVERIFY(head_fault(QStringLiteral("a.cpp"), spdx).isEmpty());
        QVERIFY(!head_fault(QStringLiteral("a.cpp"), QStringLiteral("\n") + spdx).isEmpty());
        QVERIFY(head_fault(QStringLiteral("a.h"), spdx + QStringLiteral("#pragma once\n")).isEmpty());
        QVERIFY(!head_fault(QStringLiteral("a.h"), spdx).isEmpty());
        QVERIFY(head_fault(QStringLiteral("run"), QStringLiteral("#!/bin/sh\n# ") + spdx).isEmpty());
    }

    void the_tree_obeys()
    {
        const QStringList files = own_files();
        QStringList faults;
        int includes_seen = 0;
        int in_core = 0;
        for (const QString& path : files) {
            const QString text = text_of(QDir(QStringLiteral(POSISCOPE_SOURCE_DIR)).filePath(path));
            if (const QString fault = head_fault(path, text); !fault.isEmpty())
                faults.append(path + QStringLiteral(": ") + fault);
            if (!is_source(path)) continue;
            in_core += path.startsWith(QLatin1String("core/")) ? 1 : 0;
            for (const Include& include : includes_of(text)) {
                ++includes_seen;
                const QString fault = include_fault(path, include);
                if (!fault.isEmpty())
                    faults.append(path + QStringLiteral(" includes ") + include.name + QStringLiteral(": ") +
                                  fault);
            }
        }
        QVERIFY2(faults.isEmpty(), qPrintable(QStringLiteral("\n") + faults.join(QLatin1Char('\n'))));
        // A search that finds no files would obey every rule.
        QVERIFY(in_core > 20);
        QVERIFY(includes_seen > 100);
    }

    void every_folder_of_core_has_a_layer()
    {
        const QDir core(QStringLiteral(POSISCOPE_SOURCE_DIR "/core"));
        for (const QString& folder : core.entryList(QDir::Dirs | QDir::NoDotAndDotDot))
            QVERIFY2(folder == QLatin1String("engine") || rank_of(folder), qPrintable(folder));
    }
};

QTEST_APPLESS_MAIN(TestIncludeRules)
#include "tst_include_rules.moc"
