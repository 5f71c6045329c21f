// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/dialogs/about_dialog.h"

#include <QCoreApplication>

#include "core/base/version.h"
#include "core/kernels/kernel_set.h"
#include "core/kernels/thread_pool.h"
#include "ui/convert.h"

namespace posiscope::ui {

QString about_text(const QString& engine_line)
{
    const auto translated = [](const char* text) { return QCoreApplication::translate("about", text); };
    const auto row = [](const QString& name, const QString& value) {
        return QStringLiteral("<tr><td style='padding-right:16px'>%1</td><td>%2</td></tr>")
            .arg(name.toHtmlEscaped(), value.toHtmlEscaped());
    };
    QString html =
        QStringLiteral("<h2>Posiscope %1</h2><p>%2</p><table>")
            .arg(QLatin1String(core::version),
                 translated("What position embeddings do in Transformers: the identical-word probe, seen "
                            "and measured."));
    html += row(translated("Kernels"),
                translated("%1, %2 threads").arg(to_qstring(core::kernels().name)).arg(core::thread_count()));
    html += row(translated("LibTorch engine"), engine_line);
    html += row(QStringLiteral("Qt"), QLatin1String(qVersion()));
    html += QStringLiteral("</table>");
    html +=
        QStringLiteral("<h3>%1</h3><p>%2</p>")
            .arg(translated("Source"),
                 translated(
                     "B. Wang, L. Shang, C. Lioma, X. Jiang, H. Yang, Q. Liu, J. G. Simonsen: On Position "
                     "Embeddings in BERT. ICLR 2021."));
    html +=
        QStringLiteral("<h3>%1</h3><p>%2</p><p>%3</p>")
            .arg(
                translated("Licences"),
                translated(
                    "Posiscope is free software under the GNU General Public License, version 3 or later. It "
                    "comes without any warranty."),
                translated(
                    "It uses Qt (LGPL-3.0), QCustomPlot (GPL-3.0-or-later), Eigen (MPL-2.0), "
                    "nlohmann/json (MIT) and, where a forward pass is needed, LibTorch (BSD-3-Clause). The "
                    "embedded sample is the first attention layer of "
                    "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)."));
    return html;
}

} // namespace posiscope::ui
