// SPDX-License-Identifier: GPL-3.0-or-later
// One application id everywhere: desktops find the program's name, icon and files by it.
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTest>
#include <QXmlStreamReader>

#include "core/base/version.h"

namespace {

const QString application_id = QStringLiteral("org.posiscope.Posiscope");

QByteArray bytes_of(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QString source(const QString& path)
{
    return QDir(QStringLiteral(POSISCOPE_SOURCE_DIR)).filePath(path);
}

QString metainfo_file()
{
    return QStringLiteral(POSISCOPE_BINARY_DIR "/packaging/") + application_id +
           QStringLiteral(".metainfo.xml");
}

/// The value of a key of the desktop file's main group.
QString desktop_value(const QString& key)
{
    const QString text = QString::fromUtf8(
        bytes_of(source(QStringLiteral("packaging/") + application_id + QStringLiteral(".desktop"))));
    const QRegularExpression line(QStringLiteral("^%1=(.*)$").arg(key), QRegularExpression::MultilineOption);
    return line.match(text).captured(1);
}

struct XmlElement {
    QString name, text;
    QXmlStreamAttributes attributes;
};

/// Every element of a file with its own text; empty where the file is not well-formed.
QList<XmlElement> elements_of(const QString& path)
{
    QXmlStreamReader reader(bytes_of(path));
    QList<XmlElement> elements;
    QList<qsizetype> open;
    while (!reader.atEnd()) {
        reader.readNext();
        if (reader.isStartElement()) {
            open.append(elements.size());
            elements.append({reader.name().toString(), {}, reader.attributes()});
        } else if (reader.isEndElement()) {
            open.removeLast();
        } else if (reader.isCharacters() && !open.isEmpty()) {
            elements[open.last()].text += reader.text().trimmed();
        }
    }
    return reader.hasError() ? QList<XmlElement>() : elements;
}

QStringList texts_of(const QList<XmlElement>& elements, const QString& name)
{
    QStringList texts;
    for (const XmlElement& element : elements)
        if (element.name == name) texts.append(element.text);
    return texts;
}

/// Runs a checker where it is installed; what it says when it refuses the file.
QString refusal_of(const QString& program, const QStringList& arguments)
{
    if (QStandardPaths::findExecutable(program).isEmpty()) return {};
    QProcess process;
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(program, arguments);
    if (!process.waitForFinished(60'000)) return program + QStringLiteral(" did not end");
    return process.exitCode() == 0 ? QString() : QString::fromUtf8(process.readAll());
}

} // namespace

class TestPackaging : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void the_desktop_file_names_program_and_icon()
    {
        QCOMPARE(desktop_value(QStringLiteral("Type")), QStringLiteral("Application"));
        QCOMPARE(desktop_value(QStringLiteral("Name")), QStringLiteral("Posiscope"));
        QCOMPARE(desktop_value(QStringLiteral("Icon")), application_id);
        QCOMPARE(desktop_value(QStringLiteral("Exec")), QStringLiteral("posiscope %F"));
        const QString refusal =
            refusal_of(QStringLiteral("desktop-file-validate"),
                       {source(QStringLiteral("packaging/") + application_id + QStringLiteral(".desktop"))});
        QVERIFY2(refusal.isEmpty(), qPrintable(refusal));
    }

    void the_metainfo_has_the_same_id_and_the_version()
    {
        const auto elements = elements_of(metainfo_file());
        QVERIFY(!elements.isEmpty());
        QCOMPARE(texts_of(elements, QStringLiteral("id")), QStringList{application_id});
        QCOMPARE(texts_of(elements, QStringLiteral("launchable")),
                 QStringList{application_id + QStringLiteral(".desktop")});
        QCOMPARE(texts_of(elements, QStringLiteral("project_license")),
                 QStringList{QStringLiteral("GPL-3.0-or-later")});
        int releases = 0;
        for (const XmlElement& element : elements) {
            if (element.name != QLatin1String("release")) continue;
            if (releases++ == 0)
                QCOMPARE(element.attributes.value(QLatin1String("version")).toString(),
                         QString::fromLatin1(posiscope::core::version));
        }
        QVERIFY(releases > 0);
        const QString refusal =
            refusal_of(QStringLiteral("appstreamcli"),
                       {QStringLiteral("validate"), QStringLiteral("--no-net"), metainfo_file()});
        QVERIFY2(refusal.isEmpty(), qPrintable(refusal));
    }

    void the_window_says_the_same_id()
    {
        const QString program = QString::fromUtf8(bytes_of(source(QStringLiteral("app/main.cpp"))));
        static const QRegularExpression call(
            QStringLiteral("setDesktopFileName\\(QStringLiteral\\(\"([^\"]*)\"\\)\\)"));
        QCOMPARE(call.match(program).captured(1), application_id);
    }

    void the_file_type_is_the_one_the_desktop_file_opens()
    {
        const auto elements =
            elements_of(source(QStringLiteral("packaging/") + application_id + QStringLiteral("-mime.xml")));
        QStringList types;
        for (const XmlElement& element : elements)
            if (element.name == QLatin1String("mime-type"))
                types.append(element.attributes.value(QLatin1String("type")).toString());
        QCOMPARE(types.size(), 1);
        QVERIFY(desktop_value(QStringLiteral("MimeType")).split(QLatin1Char(';')).contains(types.first()));
        QVERIFY(texts_of(elements_of(metainfo_file()), QStringLiteral("mediatype")).contains(types.first()));
    }

    void icons_have_the_size_that_they_say_data()
    {
        QTest::addColumn<int>("size");
        for (int size : {16, 24, 32, 48, 64, 128, 256, 512}) QTest::addRow("%d", size) << size;
    }
    void icons_have_the_size_that_they_say()
    {
        QFETCH(int, size);
        const QByteArray png =
            bytes_of(source(QStringLiteral("resources/icons/%1-%2.png").arg(application_id).arg(size)));
        // PNG's first chunk holds width and height as big-endian numbers at bytes 16 and 20.
        QVERIFY(png.size() > 24);
        QVERIFY(png.startsWith("\x89PNG"));
        const auto number_at = [&](qsizetype at) {
            int number = 0;
            for (qsizetype n = at; n < at + 4; ++n)
                number = number * 256 + static_cast<unsigned char>(png[n]);
            return number;
        };
        QCOMPARE(number_at(16), size);
        QCOMPARE(number_at(20), size);
        const auto drawing =
            elements_of(source(QStringLiteral("resources/icons/%1.svg").arg(application_id)));
        QVERIFY(!drawing.isEmpty() && drawing.first().name == QLatin1String("svg"));
    }
};

QTEST_APPLESS_MAIN(TestPackaging)
#include "tst_packaging.moc"
