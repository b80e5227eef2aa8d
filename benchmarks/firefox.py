"""Firefox for benchmarks of pages, by its own protocol, WebDriver BiDi: Playwright has a Firefox of its own, which it
downloads. Needs `pip install websocket-client`.
"""

import itertools
import json
import shutil
import subprocess
import tempfile
import time

PORT = 9333


class Firefox:
    """A browser without a window."""

    page_process = b"-contentproc"
    """What the command of a process of a page has."""

    def __init__(self):
        import websocket

        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        name = shutil.which("firefox-esr") or "firefox"
        command = [name, "--headless", "--no-remote", "--profile", self.profile.name, "--remote-debugging-port", PORT]
        self.process = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.numbers = itertools.count(1)
        for _ in range(100):
            try:
                url = f"ws://127.0.0.1:{PORT}/session"
                self.socket = websocket.create_connection(url, suppress_origin=True, timeout=300)
                break
            except OSError:  # it is not ready yet
                time.sleep(0.2)
        self.version = self.command("session.new", capabilities={})["capabilities"]["browserVersion"]

    def command(self, method, **params):
        """The result of a command."""
        number = next(self.numbers)
        self.socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while (answer := json.loads(self.socket.recv())).get("id") != number:
            continue  # an event
        if answer["type"] == "error":
            raise RuntimeError(answer["message"])
        return answer["result"]

    def new_page(self):
        """A tab."""
        return Tab(self, self.command("browsingContext.create", type="tab")["context"])

    def close(self):
        """End the browser."""
        self.socket.close()
        self.process.kill()
        self.process.wait()
        self.profile.cleanup()


class Tab:
    """A tab, with the methods of one of Playwright."""

    def __init__(self, browser, context):
        self.browser, self.context = browser, context

    def goto(self, url):
        """Open a page."""
        self.browser.command("browsingContext.navigate", context=self.context, url=url, wait="interactive")

    def evaluate(self, function, argument=None):
        """The result of a function of JavaScript."""
        expression = f"Promise.resolve(({function})({json.dumps(argument)})).then((x) => JSON.stringify(x ?? null))"
        found = self.browser.command(
            "script.evaluate", expression=expression, target={"context": self.context}, awaitPromise=True
        )
        if found["type"] == "exception":
            raise RuntimeError(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])

    def close(self):
        """Close the tab."""
        self.browser.command("browsingContext.close", context=self.context)
