// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTimer>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/checkpoint/tensor_picture.h"
#include "core/checkpoint/tensor_statistics.h"
#include "ui/plot/color_scale.h"
#include "ui/plot/matrix_plot.h"
#include "ui/task_runner.h"
#include "ui/views/analysis_view.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QMenu;
class QProgressBar;
class QPushButton;
class QSpinBox;
class QSplitter;
class QStackedWidget;
class QToolButton;
class QTreeView;

namespace posiscope::ui {

class ChartPlot;
class ElidedLabel;
class TensorTreeFilter;
class TensorTreeModel;

/// What the checkpoint is, and every tensor in it: a tree by name, and of the chosen tensor its facts, statistics and
/// picture. Small tensors are read when they are chosen, large ones when a button asks for it; always in the background.
class TensorBrowserView : public AnalysisView {
    Q_OBJECT

public:
    explicit TensorBrowserView(QWidget* parent = nullptr);
    ~TensorBrowserView() override;

    void setSession(std::shared_ptr<const core::Session> session) override;
    [[nodiscard]] QString contextLine() const override;
    void setSharedCursor(SharedCursor* cursor) override;
    [[nodiscard]] bool canExport() const override;
    void exportShown() override;
    void saveChoices(QSettings& settings) const override;
    void restoreChoices(QSettings& settings) override;

    /// Chooses a tensor by its whole name; nothing happens where there is none.
    void choose(const QString& tensor);
    [[nodiscard]] QString chosen() const { return QString::fromStdString(m_chosen); }
    /// Writes the chosen tensor in the background.
    void writeTo(const QString& path);
    /// What "Copy" puts on the clipboard: name, type, shape and, once they are known, the statistics in full.
    [[nodiscard]] QString chosenText() const;

    [[nodiscard]] QLineEdit* filterField() const { return m_filter_field; }
    [[nodiscard]] QTreeView* tree() const { return m_tree; }
    [[nodiscard]] QSpinBox* sliceBox() const { return m_slice; }
    [[nodiscard]] QComboBox* rangeBox() const { return m_range; }
    [[nodiscard]] MatrixPlot* matrixPlot() const { return m_matrix; }
    [[nodiscard]] ChartPlot* chartPlot() const { return m_chart; }
    [[nodiscard]] QPushButton* readButton() const { return m_read; }
    [[nodiscard]] QPushButton* saveButton() const { return m_save; }
    [[nodiscard]] QPushButton* stopButton() const { return m_stop; }
    [[nodiscard]] QToolButton* copyDigestButton() const { return m_copy_digest; }
    [[nodiscard]] QPushButton* digestButton() const { return m_compute_digest; }
    /// What is said of the model, the chosen tensor, its numbers and its picture; the last in the picture's place where
    /// there is none.
    [[nodiscard]] QString modelText() const;
    [[nodiscard]] QString tensorText() const;
    [[nodiscard]] QString statisticsText() const;
    [[nodiscard]] QString captionText() const;
    [[nodiscard]] QString digestText() const;
    [[nodiscard]] const std::optional<core::TensorStatistics>& statistics() const { return m_found; }
    /// The whole SHA-256 of the tensors used; empty until it is known.
    [[nodiscard]] QString digest() const { return m_digest_value; }
    [[nodiscard]] bool isBusy() const;

protected:
    void resizeEvent(QResizeEvent* event) override;
    void showEvent(QShowEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    /// A picture with what its drawing needs, made in the background.
    struct Drawn {
        core::TensorPicture picture;
        ColorScale scale;
        QImage image;
    };

    QWidget* buildFacts();
    QWidget* buildTree();
    QWidget* buildDetails();
    void takeModel();
    void showModelFacts();
    void showNotes();
    void applyFilter(const QString& text);
    void expandFirst();
    void takeSelection();
    void showTensor();
    void readTensor();
    void startStatistics();
    /// How a reading came about: by going through the tree, or by a button or field that is there for it.
    enum class Wish { passing, asked };
    void startPicture(Wish wish);
    void showStatistics();
    void showPicture(Drawn drawn);
    void showPictureMessage(const QString& sentence);
    void showCaption();
    void showWork();
    void wantDigest();
    void startDigest();
    void showDigest();
    void showMenu(const QPoint& where);
    void copyText(const QString& text);
    [[nodiscard]] const core::TensorInfo* info() const;
    [[nodiscard]] std::uint64_t readAtOnce() const;

    std::shared_ptr<const core::Session> m_session;
    std::shared_ptr<const core::Checkpoint> m_checkpoint;
    std::string m_chosen;
    std::optional<core::TensorStatistics> m_found;
    QString m_statistics_fault;
    bool m_is_vector = false;
    bool m_has_sizes = false;    ///< the parts have got their shares
    bool m_is_small = false;     ///< the panel has no room for all facts
    bool m_is_filtering = false; ///< rows come and go: what is current then was not chosen by anybody
    QString m_picture_caption;
    QString m_saved; ///< the file that was written last

    std::shared_ptr<const core::ProbeResult> m_digest_probe; ///< that the digest belongs to
    QString m_digest_value;
    QString m_digest_fault;
    std::size_t m_digest_tensors = 0;
    QTimer m_digest_delay;
    QTimer m_work_delay;

    ElidedLabel* m_scheme;
    ElidedLabel* m_file;
    ElidedLabel* m_digest;
    QToolButton* m_copy_digest;
    QPushButton* m_compute_digest;
    ElidedLabel* m_notes;
    QLineEdit* m_filter_field;
    TensorTreeModel* m_tensors;
    TensorTreeFilter* m_filter;
    QTreeView* m_tree;
    QLabel* m_none;
    QStackedWidget* m_tree_pages;
    QSplitter* m_splitter;
    QStackedWidget* m_details;
    ElidedLabel* m_name;
    ElidedLabel* m_facts;
    QLabel* m_statistics;
    QPushButton* m_read;
    QPushButton* m_save;
    QToolButton* m_copy;
    QWidget* m_slice_row;
    QSpinBox* m_slice;
    QLabel* m_slices;
    QComboBox* m_range;
    QStackedWidget* m_pages;
    MatrixPlot* m_matrix;
    ChartPlot* m_chart;
    QLabel* m_message;
    ElidedLabel* m_caption;
    QWidget* m_work;
    QLabel* m_work_label;
    QProgressBar* m_work_bar;
    QPushButton* m_stop;

    // Last members: they stop and wait before anything else goes.
    TaskRunner m_statistics_runner;
    TaskRunner m_picture_runner;
    TaskRunner m_writer;
    TaskRunner m_digest_runner;
};

} // namespace posiscope::ui
