# SPDX-License-Identifier: MIT
"""`make site`: no link or anchor is broken, nothing comes from another host, and a browser shows every page.

In headless Chromium each page is loaded at 390 and at 1,280 pixels: it writes nothing to the console and is not wider
than the window. Pictures of some pages, in light and in dark, are in build/site-pictures. The search finds a word.
"""
import base64
import html.parser
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.parse

TOP = os.environ["TOP"]
BUILD = os.environ["BUILD_DIR"]
SITE = os.path.join(tempfile.gettempdir() if not os.access(BUILD, os.W_OK) else BUILD, "site-test")
PICTURES = SITE + "-pictures"
SHOWN = ("index.html", "format.html", "tokmap-pack.1.html", "tokmap-tasks.7.html", "tokmap.h.html")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Reader(html.parser.HTMLParser):
    """The ids of a page, its links, and what a browser loads for it."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads = [], [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loads += [values[name] for name in ("src", "srcset", "data", "poster") if name in values]
        if tag == "link":
            self.loads.append(values["href"])


class Browser:
    """Chromium, which takes commands as JSON on a pipe (the option --remote-debugging-pipe)."""

    def __init__(self):
        self.profile = tempfile.mkdtemp()
        theirs_in, self.to = os.pipe()
        self.come, theirs_out = os.pipe()
        for end in theirs_in, theirs_out:
            os.set_inheritable(end, True)
        shell = f'exec 3<&{theirs_in} 4>&{theirs_out}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "bash", BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-pipe", "--hide-scrollbars",
             "--allow-file-access-from-files", f"--user-data-dir={self.profile}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": self.profile})
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log", "Network":
            self.call(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            block = os.read(self.come, 1 << 20)
            if not block:
                raise EOFError("Chromium has ended")
            self.rest += block
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.to, json.dumps(call).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def load(self, path):
        self.events.clear()
        self.call("Page.navigate", url="file://" + urllib.parse.quote(path))
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return result["result"].get("value")

    def window(self, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=844 if width < 600 else 900,
                  deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """What the page wrote to the console, and what it asked for that is not a file."""
        said = []
        for event in self.events:
            method, values = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                said.append(json.dumps(values)[:400])
            if method == "Network.requestWillBeSent" and not values["request"]["url"].startswith(("file:", "data:")):
                said.append(values["request"]["url"])
        return said

    def close(self):
        os.close(self.to)
        os.close(self.come)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


@unittest.skipUnless(os.path.exists(os.path.join(TOP, ".github", "site", "site.py")), "the sources are not here")
@unittest.skipUnless(shutil.which("lowdown"), "lowdown is missing: apt-get install lowdown")
@unittest.skipUnless(shutil.which("mandoc"), "mandoc is missing: apt-get install mandoc")
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["python3", os.path.join(TOP, ".github", "site", "site.py"), SITE], check=True,
                       stdout=subprocess.DEVNULL)
        cls.names = sorted(name for name in os.listdir(SITE) if name.endswith(".html"))
        cls.pages = {name: Reader(os.path.join(SITE, name)) for name in cls.names}

    def test_pages(self):
        """The README, the manual pages, the specifications, and the headers are there, each in the navigation."""
        for name in ("index.html", "format.html", "run.html", "order.html", "tokmap.1.html", "tokmap-bench.1.html",
                     "tokmap-run.5.html", "tokmap.h.html", "pack.h.html", "cuda.h.html", "contributing.html"):
            self.assertIn(name, self.pages)
        for name in self.names:
            self.assertIn(name, self.pages["index.html"].links)

    def test_links(self):
        for name, page in self.pages.items():
            for link in page.links:
                if re.match(r"https?://|mailto:", link):
                    continue
                path, _, anchor = urllib.parse.unquote(link).partition("#")
                self.assertIn(path or name, self.pages, f"{name}: {link}")
                if anchor:
                    self.assertIn(anchor, self.pages[path or name].ids, f"{name}: {link}")

    def test_ids(self):
        for name, page in self.pages.items():
            double = {one for one in page.ids if page.ids.count(one) > 1}
            self.assertEqual(double, set(), name)

    def test_nothing_from_elsewhere(self):
        for name, page in self.pages.items():
            for load in page.loads:
                self.assertTrue(load.startswith("data:,") or os.path.isfile(os.path.join(SITE, load)), f"{name}: {load}")
        for name in os.listdir(SITE):
            if name.endswith((".css", ".js")) and name != "search-index.js":
                with open(os.path.join(SITE, name), encoding="utf-8") as file:
                    self.assertNotRegex(file.read(), r"https?://|@import|url\(", name)

    def test_functions(self):
        """Each function of the public headers has an anchor and a comment."""
        for name in os.listdir(os.path.join(TOP, "include", "tokmap")):
            with open(os.path.join(TOP, "include", "tokmap", name), encoding="utf-8") as file:
                functions = re.findall(r"^TOKMAP_API [^;]*?\b(tokmap_\w+)\(", file.read(), re.M)
            for function in functions:
                self.assertIn(function, self.pages[name + ".html"].ids)

    @unittest.skipUnless(BROWSER, "Chromium is missing: apt-get install chromium")
    def test_in_a_browser(self):
        shutil.rmtree(PICTURES, ignore_errors=True)
        os.makedirs(PICTURES)
        browser = Browser()
        self.addCleanup(browser.close)
        for width in 390, 1280:
            for scheme in "light", "dark":
                browser.window(width, scheme)
                for name in self.names:
                    if scheme == "dark" and name not in SHOWN:
                        continue
                    browser.load(os.path.join(SITE, name))
                    wide = browser.value("document.documentElement.scrollWidth")
                    self.assertLessEqual(wide, width, name)
                    self.assertEqual(browser.complaints(), [], name)
                    if name in SHOWN:
                        browser.picture(os.path.join(PICTURES, f"{name[:-5]}-{width}-{scheme}.png"))
        self.search(browser)

    def search(self, browser):
        """The word is in one section of FORMAT.md; a word that is nowhere is not found; HTML in it is text."""
        def results(words):
            browser.value(f"""{{const field = document.getElementById("site-search"); field.focus();
                field.value = {json.dumps(words)}; field.dispatchEvent(new Event("input")); 0}}""")
            for _ in range(200):
                found = browser.value("""(results => results.hidden ? null : [...results.querySelectorAll("a")].map(
                    link => [link.getAttribute("href"), link.textContent]))(document.getElementById("site-results"))""")
                if found is not None:
                    return found
                time.sleep(0.05)
            self.fail("the search shows nothing")
        browser.load(os.path.join(SITE, "index.html"))
        found = results("tokmap_loader_next")
        self.assertTrue(any(address.endswith(".h.html#tokmap_loader_next") for address, _ in found), found)
        found = results("checkpoint-seconds journal")
        self.assertTrue(any("tokmap-tasks.7.html" in address for address, _ in found), found)
        browser.picture(os.path.join(PICTURES, "search-1280-dark.png"))
        self.assertEqual(results("<b>no-such-word</b>"), [])
        self.assertEqual(browser.complaints(), [])
