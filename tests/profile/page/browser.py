"""Headless Chromium over its DevTools protocol, by pipes: messages are JSON, each ends with a zero byte."""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars",
           "--disable-background-networking", "--disable-extensions", "--mute-audio", "--remote-debugging-pipe")
KEYS = {"Escape": 27, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


def executable():
    """$HEDDLE_CHROMIUM or the first browser found; None where there is none."""
    return os.environ.get("HEDDLE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page. Use as a context."""

    def __init__(self, width=1440, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="heddle-browser-", ignore_cleanup_errors=True)
        to_browser, self.writes = os.pipe()
        self.reads, from_browser = os.pipe()

        def descriptors():  # the browser reads 3 and writes 4
            spare = [os.dup(to_browser), os.dup(from_browser)]
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self.process = subprocess.Popen(
            [executable(), *OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}", "about:blank"],
            preexec_fn=descriptors, close_fds=False, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number, self.buffer, self.session, self.messages = 0, b"", None, []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Runtime", "Page", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)  # its own session: the browser and its children
        self.process.wait()
        self.folder.cleanup()

    def receive(self, timeout):
        """The next message. Throws TimeoutError."""
        end = time.monotonic() + timeout
        while b"\0" not in self.buffer:
            if not select.select([self.reads], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"no answer of the browser within {timeout} s")
            data = os.read(self.reads, 1 << 20)
            if not data:
                raise ConnectionError("the browser ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, timeout=60, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.writes, json.dumps(request).encode() + b"\0")
        while True:
            message = self.receive(timeout)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.messages.append(message)

    def open(self, path, fragment="", expression="window.heddle && document.querySelector('#panel > *') !== null"):
        """Loads a page and waits until the expression holds; returns the seconds that this took."""
        begin = time.monotonic()
        self.call("Page.navigate", url="about:blank")
        self.messages.clear()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri() + (f"#{fragment}" if fragment else ""))
        while not self.run(expression):
            if time.monotonic() - begin > 60:
                raise TimeoutError(f"{path} does not load: {self.errors()}")
            time.sleep(0.02)
        return time.monotonic() - begin

    def run(self, script):
        """The value of a script, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def frame(self):
        """Waits until what was asked for is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def errors(self):
        """Errors and warnings of the console, exceptions, and requests for anything but the page."""
        found = []
        for message in self.messages:
            method, parameters = message.get("method"), message.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(f"console.{parameters['type']}: {parameters['args']}")
            elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif method == "Network.requestWillBeSent" and parameters["type"] != "Document":
                found.append(f"request: {parameters['request']['url'][:100]}")
        return found

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.frame()

    def click_on(self, selector, text=None):
        """Clicks into the middle of the first element of a selector, and of a text where one is given."""
        box = self.run(f"""(() => {{
            const found = [...document.querySelectorAll({json.dumps(selector)})].find((element) => {json.dumps(text)} === null || element.textContent.includes({json.dumps(text)}));
            if (!found) return null;
            const box = found.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        }})()""")
        assert box, f"there is no {selector} {text or ''}"
        self.click(*box)

    def press(self, key, modifiers=0):
        code = {"windowsVirtualKeyCode": KEYS[key]} if key in KEYS else {"text": key}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)
        self.frame()

    def write(self, text):
        self.call("Input.insertText", text=text)
        self.frame()

    def scheme(self, name):
        """Light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}, {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.frame()

    def screenshot(self, small=False):
        """The page as PNG; a small one takes longer."""
        self.frame()
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", optimizeForSpeed=not small)["data"])
