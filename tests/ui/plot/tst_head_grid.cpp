// SPDX-License-Identifier: GPL-3.0-or-later
#include <QSignalSpy>
#include <QTest>

#include "tests/support/plot_maps.h"
#include "ui/plot/head_grid.h"

using namespace posiscope::ui;
using posiscope::core::PositionMap;

namespace {

/// Head h holds the value h everywhere, on 4 x 4 positions.
std::vector<PositionMap> constant_heads(int count)
{
    std::vector<PositionMap> heads;
    for (int head = 0; head < count; ++head)
        heads.push_back(posiscope::test::map_of(4, std::vector<double>(16, static_cast<double>(head))));
    return heads;
}

} // namespace

class TestHeadGrid : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void heads_share_one_scale_and_do_not_overlap()
    {
        HeadGrid grid;
        grid.resize(520, 400);
        const HeadPictures pictures =
            make_head_pictures(constant_heads(12), ColorMapId::viridis, ScaleKind::linear);
        grid.setPictures(pictures, QStringLiteral("attention logit"));
        grid.show();
        QVERIFY(QTest::qWaitForWindowExposed(&grid));
        const QImage picture = grid.grab().toImage();
        for (int head = 0; head < 12; ++head) {
            QVERIFY(grid.rect().contains(grid.headRect(head)));
            QCOMPARE(grid.headRect(head).width(), grid.headRect(head).height());
            QCOMPARE(picture.pixel(grid.headRect(head).center()), pictures.scale.color(head));
            for (int other = 0; other < head; ++other)
                QVERIFY(!grid.headRect(head).intersects(grid.headRect(other)));
        }
    }

    void a_click_picks_a_head()
    {
        HeadGrid grid;
        grid.resize(520, 400);
        grid.setPictures(make_head_pictures(constant_heads(12), ColorMapId::viridis, ScaleKind::linear),
                         QString());
        grid.show();
        QVERIFY(QTest::qWaitForWindowExposed(&grid));
        QSignalSpy clicked(&grid, &HeadGrid::headClicked);
        QSignalSpy hovered(&grid, &HeadGrid::headHovered);
        QTest::mouseMove(&grid, grid.headRect(3).center());
        QCOMPARE(hovered.last(), QVariantList({3}));
        QTest::mouseClick(&grid, Qt::LeftButton, {}, grid.headRect(7).center());
        QCOMPARE(clicked.last(), QVariantList({7}));
        QTest::keyClick(&grid, Qt::Key_Right);
        QTest::keyClick(&grid, Qt::Key_Space);
        QCOMPARE(clicked.last(), QVariantList({4}));
    }

    void many_heads_fit()
    {
        HeadGrid grid;
        grid.resize(900, 700);
        grid.setPictures(make_head_pictures(constant_heads(144), ColorMapId::magma, ScaleKind::linear),
                         QString());
        for (int head = 0; head < 144; ++head) QVERIFY(grid.rect().contains(grid.headRect(head)));
        grid.clear();
        QCOMPARE(grid.headCount(), 0);
        QVERIFY(grid.headRect(0).isNull());
    }
};

QTEST_MAIN(TestHeadGrid)
#include "tst_head_grid.moc"
