// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include <QByteArray>
#include <QList>
#include <QRegularExpression>
#include <QString>
#include <QTransform>
#include <QtEndian>

namespace posiscope::test {

/// A PDF's objects by their number: "<<...>> stream...".
inline QByteArray pdf_object(const QByteArray& pdf, int number)
{
    const QByteArray head = '\n' + QByteArray::number(number) + " 0 obj\n";
    const qsizetype at = pdf.indexOf(head);
    return at < 0 ? QByteArray() : pdf.mid(at + head.size(), pdf.indexOf("endobj", at) - at - head.size());
}

inline QByteArray inflated(const QByteArray& object)
{
    const qsizetype at = object.indexOf("stream\n") + 7;
    const QByteArray packed = object.mid(at, object.lastIndexOf("endstream") - at);
    QByteArray with_size(4, '\0');
    qToBigEndian<quint32>(1u << 22u, with_size.data());
    return qUncompress(with_size + packed);
}

struct PdfImage {
    int width = 0;
    int height = 0;
    QByteArray pixels;    ///< RGB
    QTransform placement; ///< of the unit square, whose upper edge is the picture's first row
};

/// Pictures of a page in drawing order, found by following the page's content (operators q, Q, cm and Do).
inline std::vector<PdfImage> pdf_images(const QByteArray& pdf)
{
    std::vector<PdfImage> images;
    static const QRegularExpression page_content(QStringLiteral("/Type /Page\\s[^>]*?/Contents (\\d+) 0 R"));
    const int content = page_content.match(QString::fromLatin1(pdf)).captured(1).toInt();
    QTransform now;
    QList<QTransform> saved;
    QList<QByteArray> operands;
    for (const QByteArray& token : inflated(pdf_object(pdf, content)).simplified().split(' ')) {
        if (token == "q")
            saved.append(now);
        else if (token == "Q" && !saved.isEmpty())
            now = saved.takeLast();
        else if (token == "cm") {
            const auto number = [&](qsizetype from_end) {
                return operands[operands.size() - from_end].toDouble();
            };
            now = QTransform(number(6), number(5), number(4), number(3), number(2), number(1)) * now;
        } else if (token == "Do") {
            const QByteArray object = pdf_object(pdf, operands.last().mid(3).toInt());
            const auto value = [&](const char* name) {
                return QRegularExpression(QString::fromLatin1(name) + QStringLiteral(" (\\d+)"))
                    .match(QString::fromLatin1(object))
                    .captured(1)
                    .toInt();
            };
            images.push_back({value("/Width"), value("/Height"), inflated(object), now});
        } else {
            operands.append(token);
            continue;
        }
        operands.clear();
    }
    return images;
}

} // namespace posiscope::test
