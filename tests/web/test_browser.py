"""The pages in a real browser, on the real service: what a user does from upload to download, and what the pages must not do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from tests.web.chromium import User, user
from tests.web.models import model, small
from tests.web.serving import Service
from tests.widgets.page import browser as chromium

LOOKED = "#expansions:not(:text-is('0'))"
"""A search that has looked at a graph."""


@pytest.fixture(autouse=True)
def _emptied() -> None:
    """Nothing: these tests leave this process's tables alone, and may not touch them while the browser's driver runs."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    path.write_bytes(small())
    return path


@pytest.fixture(scope="module")
def anna(browser: Any, service: Service, file: Path) -> Iterator[User]:
    """A user with a job that is done, on whose page the tab stands."""
    with user(browser, service.url) as found:
        found.upload(file)
        found.optimize(seconds=5).wait_for_selector("#verdict")
        yield found


def long(folder: Path) -> Path:
    """A model whose rewrites have no end: many that commute, and a search that wants all of them."""
    weights, nodes, last = [], [], "x"
    for k in range(14):
        weights += [numpy_helper.from_array(np.full((4,), 1.5, np.float32), f"{n}{k}") for n in ("s", "b", "m", "v")]
        weights.append(numpy_helper.from_array(np.full((4, 4, 1, 1), 0.2, np.float32), f"w{k}"))
        nodes.append(helper.make_node("Conv", [last, f"w{k}"], [f"c{k}"], name=f"conv{k}"))
        nodes.append(
            helper.make_node("BatchNormalization", [f"c{k}", *(f"{n}{k}" for n in ("s", "b", "m", "v"))], [f"n{k}"], name=f"norm{k}")
        )
        nodes.append(helper.make_node("Relu", [f"n{k}"], [f"r{k}"], name=f"relu{k}"))
        last = f"r{k}"
    nodes[-1].output[0] = "y"
    path = folder / "long.onnx"
    path.write_bytes(model(nodes, weights, [("x", [1, 4, 8, 8])], [("y", [1, 4, 8, 8])]))
    return path


def outputs(path: Path, x: np.ndarray) -> np.ndarray:
    return np.asarray(onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0])


def painted(tab: Any) -> None:
    """Waits until both graphs, the film and the curve are drawn."""
    for place in ('[data-graph="before"]', '[data-graph="after"]', "[data-film]", '[data-curve="points"]'):
        tab.locator(place).scroll_into_view_if_needed()
    for place in ('[data-graph="before"] [data-painted]', '[data-graph="after"] [data-painted]', '[data-film] [data-shown="0"]'):
        tab.wait_for_selector(place)
    tab.wait_for_selector('[data-curve="points"] [data-painted="1"]')


def test_a_file_goes_in_and_comes_back_equivalent(anna: User, file: Path, tmp_path: Path) -> None:
    tab = anna.tab
    assert "less estimated time" in tab.inner_text("#verdict h2")
    assert "run again by itself, in float64" in tab.inner_text(".proof")
    assert "conv-batchnorm" in tab.inner_text("#rules + .wide")
    painted(tab)
    with tab.expect_download() as arriving:
        tab.click("#verdict a[download]")
    made = tmp_path / arriving.value.suggested_filename
    arriving.value.save_as(made)
    assert made.name == "net_optimized.onnx"
    onnx.checker.check_model(str(made), full_check=True)
    assert len(onnx.load(made).graph.node) < len(onnx.load(file).graph.node)
    x = np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)
    np.testing.assert_allclose(outputs(made, x), outputs(file, x), rtol=1e-4, atol=1e-5)


def test_the_film_goes_on_by_its_buttons(anna: User, file: Path) -> None:
    tab = anna.tab
    painted(tab)
    count = int(tab.inner_text("#rules + .wide tbody td.number >> nth=0"))
    assert count >= 1
    tab.locator("[data-film] .cgorl-slider").focus()
    tab.keyboard.press("End")
    tab.wait_for_selector(f'[data-film] [data-shown="{tab.locator("[data-film] .cgorl-ledger tbody tr").count() - 1}"]')


def test_what_runs_survives_a_reload_and_stops_with_its_best(browser: Any, service: Service, anna: User, tmp_path: Path) -> None:
    with user(browser, service.url) as bert:
        bert.upload(long(tmp_path))
        tab = bert.optimize(search="exhaustive", seconds=300)
        tab.wait_for_selector(LOOKED)
        tab.reload()
        tab.wait_for_selector(LOOKED)
        tab.wait_for_selector("#course [data-painted]")
        running = tab.url

        # another user's waits behind it, and neither is seen by the other
        bert.upload(tmp_path / "long.onnx")
        bert.optimize()
        tab.wait_for_selector("text=1st in the queue")
        tab.click("#stop")
        tab.wait_for_selector("#verdict h2:has-text('Cancelled')")
        anna.go("/jobs/")
        assert "long.onnx" not in anna.tab.inner_text("main") and "net.onnx" in anna.tab.inner_text("main")
        bert.go("/jobs/")
        assert "net.onnx" not in tab.inner_text("main") and tab.locator("main tbody tr").count() == 2

        bert.go(running)
        tab.click("#stop")
        tab.wait_for_selector("#verdict")
        assert "It was stopped early" in tab.inner_text("#verdict")
        assert tab.locator("#verdict a[download]").count() == 1


def test_what_is_refused_says_why(browser: Any, service: Service, tmp_path: Path) -> None:
    apart = onnx.load_from_string(small())
    path = tmp_path / "apart.onnx"
    onnx.save(apart, path, save_as_external_data=True, location="apart.bin", size_threshold=0)
    with user(browser, service.url) as found:
        (tmp_path / "bad<b>.onnx").write_bytes(b"no model at all")
        tab = found.upload(tmp_path / "bad<b>.onnx")
        assert "is not an ONNX file" in tab.inner_text(".verdict") and tab.inner_text("h1") == "bad<b>.onnx"
        tab = found.upload(path)
        assert "apart.bin" in tab.inner_text(".verdict")
        tab = found.upload(path, tmp_path / "apart.bin")
        assert tab.inner_text("main .tiles dd >> nth=0") == "3" and "2 files" in tab.inner_text(".head")
        tab.evaluate("document.getElementById('options').noValidate = true")
        tab.fill("[name=seconds]", "99999")
        tab.click("#options button.primary")
        assert "Seconds must be a number" in tab.inner_text("[role=alert]") and tab.input_value("[name=seconds]") == "99999"
        found.complaints = [c for c in found.complaints if "400" not in c]  # the browser notes each refusal


def opened_by(key: str, tab: Any) -> Any:
    """The file chooser that a key opens; on a busy machine the browser's driver seldom is not told of one, so it is asked again."""
    from playwright.sync_api import TimeoutError as TimedOut

    for wait_ms in (10_000, 10_000, 60_000):
        try:
            with tab.expect_file_chooser(timeout=wait_ms) as chooser:
                tab.keyboard.press(key)
        except TimedOut:
            continue
        return chooser.value
    raise AssertionError(f"{key} opens no file chooser")


def test_the_keyboard_is_enough(browser: Any, service: Service, file: Path) -> None:
    with user(browser, service.url) as found:
        tab = found.go()
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        found.tab_to("#files")
        opened_by("Space", tab).set_files(str(file))
        found.tab_to(".send")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#options")
        found.tab_to("#f-search")
        found.tab_to("#options button.primary")
        tab.keyboard.press("Enter")
        tab.wait_for_selector("#verdict")
        found.tab_to("#verdict a[download]")
        with tab.expect_download() as arriving:
            tab.keyboard.press("Enter")
        assert arriving.value.suggested_filename == "net_optimized.onnx"
        painted(tab)
        found.tab_to('[data-graph="before"] .cgorl-main')
        tab.keyboard.press("ArrowDown")
        tab.wait_for_selector('[data-graph="before"] .cgorl-tip:not([hidden])')


def test_without_scripts_it_works_too(browser: Any, service: Service, file: Path) -> None:
    with user(browser, service.url, java_script_enabled=False) as found:
        tab = found.go()
        tab.set_input_files("[name=model]", str(file))
        tab.click(".plain button")
        tab.wait_for_selector("#options")  # the page looks again by itself
        tab.click("#options button.primary")
        tab.wait_for_selector("#verdict")
        assert "conv-batchnorm" in tab.inner_text("#rules + .wide")
        tab.click("text=Delete this job")
        assert "cannot be undone" in tab.inner_text("main")
        tab.click("text=Keep it")
        tab.wait_for_selector("#verdict")


def test_two_jobs_are_compared_and_deleted_once_confirmed(anna: User, file: Path) -> None:
    anna.upload(file)
    tab = anna.optimize(search="lookahead")
    tab.wait_for_selector("#verdict")
    anna.go("/jobs/")
    boxes = tab.locator("#choose input")
    assert boxes.count() >= 2 and tab.is_disabled("#choose .actions button")
    boxes.nth(0).check()
    boxes.nth(1).check()
    tab.click("#choose .actions button")
    tab.wait_for_selector("[data-curves] [data-painted='2']")
    assert "Lookahead" in tab.inner_text(".two .choice")
    anna.go("/jobs/")
    before = tab.locator("main tbody tr").count()
    tab.click("main tbody tr:first-child >> text=Delete")
    tab.click("button.danger")
    tab.wait_for_url("**/jobs/")
    assert tab.locator("main tbody tr").count() == before - 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(browser: Any, anna: User, scheme: str) -> None:
    anna.go("/jobs/")
    job = anna.tab.locator("main tbody tr:last-child td.name a").get_attribute("href")
    phone = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme, "storage_state": anna.context.storage_state()}
    with user(browser, anna.url, **phone) as found:
        for path in ("/", "/jobs/", job, f"/compare/?job={job.split('/')[2]}"):
            tab = found.go(path)
            if path == job:
                painted(tab)
            assert tab.evaluate("document.documentElement.scrollWidth") <= 360, path
            dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            assert dark == (scheme == "dark")


def test_what_is_not_there_says_so(browser: Any, service: Service) -> None:
    with user(browser, service.url) as found:
        tab = found.go("/jobs/nothing-like-that/")
        assert "There is nothing here" in tab.inner_text("[role=alert]")
        found.complaints = [c for c in found.complaints if "404" not in c]  # the browser notes it
