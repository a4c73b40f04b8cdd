"""Fixtures of the page's tests: a browser, a server, a page that asks nobody else."""

import pytest
from web_server import CHROMIUM, page_server


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("needs Chromium, which .ci/run installs")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def site(tmp_path):
    with page_server(tmp_path / "home", developer=True) as server:
        yield server


@pytest.fixture
def page(browser, site):
    """A page of the campaign; what it asks of another host, an error of the script or of the policy fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page, problems = context.new_page(), []
    page.on("request", lambda request: request.url.startswith((site.url, "blob:")) or problems.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "console",
        lambda told: (
            told.type == "error" and "Policy" in told.text and problems.append((told.text[:90], told.location))
        ),
    )
    page.goto(f"{site.url}/c/isle/")
    yield page
    context.close()
    assert not problems, problems
