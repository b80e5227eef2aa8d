"""WebKit, the engine of Safari, for benchmarks of pages, by the WebDriver protocol: WebKitGTK, in a virtual display.

Needs the Debian packages webkit2gtk-driver and xvfb.
"""

import json
import os
import socket
import subprocess
import time
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PORT, DISPLAY = 9334, ":94"
TIMEOUT_S = 600

CALL = """
const done = arguments[arguments.length - 1];
Promise.resolve(({function})({argument}))
  .then((x) => done(JSON.stringify({ value: x ?? null })), (error) => done(JSON.stringify({ error: String(error) })));
"""


class WebKit:
    """A browser in a display that is not shown."""

    page_process = b"WebKitWebProcess"
    """What the command of a process of a page has."""

    def __init__(self):
        browser = next(Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"), None)
        if not browser:
            raise FileNotFoundError("WebKitGTK: install the Debian packages webkit2gtk-driver and xvfb")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        environment = {**os.environ, "DISPLAY": DISPLAY, "LIBGL_ALWAYS_SOFTWARE": "1", "NO_AT_BRIDGE": "1"}
        self.processes = [
            subprocess.Popen(["Xvfb", DISPLAY, "-screen", "0", "1280x900x24"], **quiet),
            subprocess.Popen(["WebKitWebDriver", f"--port={PORT}"], env=environment, **quiet),
        ]
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", PORT)).close()
                break
            except OSError:  # it is not ready yet
                time.sleep(0.2)
        options = {"webkitgtk:browserOptions": {"binary": str(browser), "args": ["--automation"]}}
        session = self.command("POST", "/session", capabilities={"alwaysMatch": options})
        self.session, self.version = f"/session/{session['sessionId']}", session["capabilities"]["browserVersion"]
        self.command("POST", f"{self.session}/timeouts", script=1000 * TIMEOUT_S)

    def command(self, method, path, **parameters):
        """The result of a command."""
        body = json.dumps(parameters).encode() if method == "POST" else None
        request = Request(f"http://127.0.0.1:{PORT}{path}", body, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=TIMEOUT_S) as answer:
                return json.load(answer)["value"]
        except HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def new_page(self):
        """A window of its own: the timers of a tab that is not in front are slow."""
        return Tab(self, self.command("POST", f"{self.session}/window/new", type="window")["handle"])

    def close(self):
        """End the browser."""
        self.command("DELETE", self.session)
        for process in self.processes[::-1]:
            process.terminate()
            process.wait()


class Tab:
    """A window, with the methods of a tab of Playwright."""

    def __init__(self, browser, handle):
        self.browser, self.handle = browser, handle

    def command(self, method, path, **parameters):
        """The result of a command to this window."""
        self.browser.command("POST", f"{self.browser.session}/window", handle=self.handle)
        return self.browser.command(method, self.browser.session + path, **parameters)

    def goto(self, url):
        """Open a page."""
        self.command("POST", "/url", url=url)

    def evaluate(self, function, argument=None):
        """The result of a function of JavaScript."""
        script = CALL.replace("{function}", function).replace("{argument}", json.dumps(argument))
        found = json.loads(self.command("POST", "/execute/async", script=script, args=[]))
        if "error" in found:
            raise RuntimeError(found["error"])
        return found["value"]

    def close(self):
        """Close the window."""
        others = self.command("DELETE", "/window")
        self.browser.command("POST", f"{self.browser.session}/window", handle=others[0])
