"""A page in headless Chromium: where its shapes are, in which colours, and a picture of it.

Chromium is Qt's, from PyPI. It runs in a process of its own, so that the tests load no part of Qt.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import svg_boxes

SHAPES = Path(__file__).with_name("browser_shapes.js")
# A pixel in the lower left corner of the window.
MARKED = (1, 2, 3)
MARK = f"""
const mark = document.body.appendChild(document.createElement("div"));
mark.style.cssText = "position: fixed; left: 0; bottom: 0; width: 1px; height: 1px; background: rgb{MARKED}";
"""


class Shape(NamedTuple):
    """An element as the browser shows it. Colours are red, green, blue, from 0 to 255."""

    tag: str
    kind: str
    box: svg_boxes.Box
    color: tuple[float, float, float]
    background: tuple[float, float, float]
    hidden: float
    """By how many pixels its content is wider than the place it has; without a scroll bar, that part can't be seen."""

    @property
    def contrast(self) -> float:
        """The contrast of text and background by WCAG 2.2, from 1 to 21."""
        light, dark = sorted((_luminance(self.color), _luminance(self.background)), reverse=True)
        return (light + 0.05) / (dark + 0.05)


def _luminance(color: tuple[float, float, float]) -> float:
    parts = [part / 255 for part in color]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def visit(page: Path, screenshot: Path, width: int) -> dict[str, list[Shape]]:
    """Show a page in a window of this width, write a picture of all of it, and return the shapes of each output cell.

    The keys are the numbers of the cells, as text. Skips the test where a library that Qt loads is missing.
    """
    cells: dict[str, list[dict[str, Any]]] = _run(str(page), str(screenshot), str(width))
    return {cell: [_shape(shape) for shape in shapes] for cell, shapes in cells.items()}


def ask(questions: Sequence[tuple[str, int, str]]) -> list[Any]:
    """Return an answer to each question: an address, the width of the window, and a script that runs in the page.

    The script returns JSON as text. It runs again and again until that is not empty.
    """
    answers: list[Any] = _run(json.dumps(questions))
    return answers


def _run(*arguments: str) -> Any:
    """Run this file as a program and return what it writes; skip the test where a library that Qt loads is missing."""
    environment = {
        **os.environ,
        "QT_QPA_PLATFORM": "offscreen",
        # In containers Chromium's own sandbox needs rights that tests do not have; the page is ours.
        "QTWEBENGINE_CHROMIUM_FLAGS": "--no-sandbox --disable-gpu",
    }
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False, env=environment)
    if "ImportError: lib" in done.stderr:
        pytest.skip(f"Chromium can't be loaded: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _shape(found: dict[str, Any]) -> Shape:
    left, top, right, bottom = found["box"]
    box = svg_boxes.Box(left, top, right, bottom, found["text"])
    return Shape(found["tag"], found["kind"], box, tuple(found["color"]), tuple(found["background"]), found["hidden"])


def main(page: str, screenshot: str, width: str) -> None:
    """Write the shapes of `page` to the output, as JSON, and its picture to a file."""
    # Not at the top: the process of the tests imports this module too.
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.resize(int(width), 800)
    view.show()
    browser_page = view.page()
    assert browser_page is not None

    def loaded(well: bool) -> None:
        if not well:
            raise SystemExit(f"{page}: not loaded")
        browser_page.runJavaScript("document.documentElement.scrollHeight", grow)

    def grow(height: float) -> None:
        view.resize(int(width), int(height))
        browser_page.runJavaScript(MARK)
        timer.start(250)

    def look() -> None:
        """Wait until the mark is painted and nothing changes: Chromium paints in processes of its own."""
        picture = view.grab().toImage()
        painted = picture.pixelColor(0, picture.height() - 1).getRgb()[:3] == MARKED
        if painted and picture == seen.get("picture"):
            timer.stop()
            picture.save(screenshot)
            browser_page.runJavaScript(SHAPES.read_text(), answer)
        seen["picture"] = picture

    def answer(shapes: str) -> None:
        sys.stdout.write(shapes)
        application.quit()

    seen: dict[str, Any] = {}
    timer = QTimer()
    timer.timeout.connect(look)
    view.loadFinished.connect(loaded)
    view.load(QUrl.fromLocalFile(page))
    application.exec()


def answer_all(questions: str) -> None:
    """Write the answers of `ask` to the output, as JSON."""
    from PyQt6.QtCore import QTimer, QUrl
    from PyQt6.QtWebEngineWidgets import QWebEngineView
    from PyQt6.QtWidgets import QApplication

    application = QApplication(sys.argv[:1])
    view = QWebEngineView()
    view.show()
    browser_page = view.page()
    assert browser_page is not None
    left: list[tuple[str, int, str]] = json.loads(questions)
    answers: list[Any] = []

    def load() -> None:
        if not left:
            sys.stdout.write(json.dumps(answers))
            application.quit()
            return
        address, width, _ = left[0]
        view.resize(width, 900)
        # The same address again would not be loaded.
        view.load(QUrl(f"{address}?{len(left)}"))

    def look(well: bool) -> None:
        if not well:
            raise SystemExit(f"{left[0][0]}: not loaded")
        browser_page.runJavaScript(left[0][2], answer)

    def answer(text: str | None) -> None:
        if not text:
            QTimer.singleShot(100, lambda: look(True))
            return
        answers.append(json.loads(text))
        left.pop(0)
        load()

    view.loadFinished.connect(look)
    load()
    application.exec()


if __name__ == "__main__":
    answer_all(*sys.argv[1:]) if len(sys.argv) == 2 else main(*sys.argv[1:])
