"""The profiler's page in headless Chromium: test_page.py MAKE_PAGE. Exit status 77: node or the browser is missing."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

sys.dont_write_bytecode = True
import browser

HERE = pathlib.Path(__file__).resolve().parent
MAKE_PAGE = sys.argv[1] if len(sys.argv) > 1 else ""
LOAD_SECONDS = 10  # of 10^5 nodes and slices on a busy machine; an idle one needs a tenth


def colours(png):
    """How many different pixels, as PNG filters them, every 16th row has: a blank picture has one or two."""
    width, height, _, kind = struct.unpack(">IIBB", png[16:26])
    size = {2: 3, 6: 4}[kind]
    data, at = b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        data += png[at + 8 : at + 8 + length] if name == b"IDAT" else b""
        at += 12 + length
    rows, stride = zlib.decompress(data), 1 + width * size
    starts = (y * stride + 1 + x * size for y in range(0, height, 16) for x in range(0, width, 4))
    return len({rows[start : start + size] for start in starts})


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.pages = {}
        for name, arguments in {"training": ["training"], "slower": ["training", "2", "1.4"], "hostile": ["hostile"], "smallest": ["smallest"], "deep": ["deep", "2500"],
                                "large": ["random", "100000", "100000", "1"]}.items():
            text = subprocess.run(["node", HERE / "synthetic.mjs", *arguments], check=True, capture_output=True).stdout
            path = pathlib.Path(cls.folder.name) / name
            path.with_suffix(".json").write_bytes(text)
            subprocess.run([MAKE_PAGE, path.with_suffix(".json"), path.with_suffix(".html")], check=True)
            cls.pages[name] = path.with_suffix(".html")
        cls.browser = browser.Browser()
        cls.browser.scheme("light")

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def open(self, name, fragment=""):
        return self.browser.open(self.pages[name], fragment)

    def tearDown(self):
        self.assertEqual(self.browser.errors(), [])

    def value(self, script):
        return self.browser.run(script)

    def rows(self):
        """Names of the rows that a table shows."""
        return self.value("[...document.querySelectorAll('.table-rows .row .name')].map(e => e.textContent)")

    def numbers(self, field):
        return self.value(f"heddle.panelOf(heddle.state.view).table.entries.filter(e => e.row).map(e => e.row.value(heddle.panelOf(heddle.state.view).table.fields[{field}].column))")

    def test_every_tab_shows_something(self):
        self.open("training")
        for view in ("overview", "flame", "top-down", "bottom-up", "flat", "sandwich", "timeline", "roofline"):
            with self.subTest(view=view):
                self.browser.click_on(f"#tab-{view}")
                self.assertEqual(self.value("heddle.state.view"), view)
                self.assertIn(f"view={view}", self.value("location.hash"))
                self.assertGreater(colours(self.browser.screenshot()), 20)

    def test_dark_and_light(self):
        self.open("training", "view=flame")
        pixel = "heddle.palette.get('panel')"
        light = self.value(pixel)
        self.browser.scheme("dark")
        self.assertNotEqual(self.value(pixel), light)
        self.browser.press("t")
        self.assertEqual(self.value(pixel), light)
        self.browser.press("t")
        self.value("localStorage.clear()")
        self.browser.scheme("light")

    def test_canvases_are_not_blank(self):
        for view in ("flame", "timeline", "roofline", "sandwich"):
            self.open("training", f"view={view}&node=5")
            self.browser.frame()
            drawn = self.value("[...document.querySelectorAll('canvas')].every(c => new Set(new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size > 3)")
            self.assertTrue(drawn, view)

    def test_hot_path_opens_the_heaviest_chain(self):
        self.open("training", "view=top-down")
        self.assertEqual(len(self.rows()), 3)  # the run, two lines of the script
        self.browser.click_on(".hot")
        self.assertIn("model", self.rows())
        self.assertEqual(self.value("heddle.names[heddle.tree.frame[heddle.state.node]]"), "model")
        self.assertEqual(self.value("document.querySelector('.code-current .line-text').textContent").strip(), "output = model(images)")

    def test_rows_open_and_close_by_click_and_by_key(self):
        self.open("training", "view=top-down")
        before = self.rows()
        self.browser.click_on(".table-rows .row:nth-child(2) .toggle")
        opened = self.rows()
        self.assertGreater(len(opened), len(before))
        self.browser.click_on(".table-rows .row:nth-child(2) .name")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.rows(), before)
        self.browser.press("ArrowRight")
        self.assertEqual(self.rows(), opened)
        self.browser.press("ArrowDown")
        self.assertEqual(self.value("document.querySelector('.row[aria-selected=true] .name').textContent"), opened[2])

    def test_sort(self):
        self.open("training", "view=flat")
        total = self.numbers(0)
        self.assertEqual(total, sorted(total, reverse=True))
        self.browser.click_on(".sort", "Own")
        own = self.numbers(1)
        self.assertEqual(own, sorted(own, reverse=True))
        self.browser.click_on(".sort", "Own")
        own = self.numbers(1)
        self.assertEqual(own, sorted(own))
        self.browser.click_on(".sort", "Name")
        names = [name for name in self.rows() if "more," not in name]
        self.assertEqual(names, sorted(names))

    def test_search_counts_marks_and_filters(self):
        self.open("training", "view=flat")
        self.browser.press("/")
        self.browser.write("layer3.0")
        self.assertRegex(self.value("document.querySelector('.found').textContent"), r"^7 rows, \d+\.\d%$")
        self.browser.click_on(".choice", "only matches")
        self.assertEqual(set(self.rows()), {"layer3.0", *(f"layer3.0.{part}{i}" for part in ("conv", "bn") for i in (1, 2, 3))})
        self.browser.click_on("#tab-top-down")
        self.assertIn("layer3.0", self.rows())
        self.assertNotIn("layer2", self.rows())
        self.browser.click_on("#search")
        self.browser.press("Enter")
        self.assertEqual(self.value("document.querySelector('.details h2').textContent"), "layer3.0")
        self.value("heddle.set({query: '/(/'})")
        self.assertEqual(self.value("document.querySelector('.found').textContent"), "no regular expression")

    def test_flame_graph_zooms_and_returns(self):
        self.open("training", "view=flame")
        flame = "heddle.panelOf('flame').canvas"
        box = self.value("(b => [b.left, b.top])(document.querySelector('canvas').getBoundingClientRect())")
        whole = self.value(f"{flame}.to")
        self.browser.click(box[0] + 30, box[1] + 5 * 19 + 8)
        self.assertEqual(self.value("document.querySelector('.details h2').textContent"), "layer1")
        self.assertLess(self.value(f"{flame}.to - {flame}.from"), whole / 2)
        self.browser.press("Escape")
        self.assertEqual(self.value(f"{flame}.to - {flame}.from"), whole)
        self.browser.mouse("mouseWheel", box[0] + 300, box[1] + 50, deltaX=0, deltaY=-400, modifiers=2)
        self.browser.frame()
        self.assertLess(self.value(f"{flame}.to - {flame}.from"), whole * 0.9)
        self.browser.click_on(".choice", "callers")
        self.assertEqual(self.value("heddle.state.direction"), "up")
        self.assertAlmostEqual(self.value(f"{flame}.flame.value[0]") / whole, 1, 3)

    def test_hint_names_what_is_under_the_pointer(self):
        self.open("training", "view=flame")
        box = self.value("(b => [b.left, b.top])(document.querySelector('canvas').getBoundingClientRect())")
        self.browser.mouse("mouseMoved", box[0] + 20, box[1] + 3 * 19 + 8)
        self.browser.frame()
        self.assertEqual(self.value("document.querySelector('.hint-name').textContent"), "model")

    def test_timeline_zooms_selects_and_adds_up(self):
        self.open("training", "view=timeline")
        panel = "heddle.panelOf('timeline')"
        x, y, width = self.value("(b => [b.left, b.top, b.width])(document.querySelector('canvas').getBoundingClientRect())")
        whole = self.value(f"{panel}.to - {panel}.from")
        self.browser.mouse("mousePressed", x + 300, y + 60, button="left", modifiers=8)
        self.browser.mouse("mouseMoved", x + width - 20, y + 60, button="left", modifiers=8)
        self.browser.mouse("mouseReleased", x + width - 20, y + 60, button="left", modifiers=8)
        self.browser.frame()
        self.assertIn("cudnn::bn", self.value("document.querySelector('.totals').textContent"))
        self.browser.mouse("mouseWheel", x + 600, y + 60, deltaX=0, deltaY=-3000)
        self.browser.frame()
        self.assertLess(self.value(f"{panel}.to - {panel}.from"), whole / 20)
        self.browser.click_on(".choice", "all callers")
        self.assertGreater(self.value(f"{panel}.lanes.length"), 8)
        self.browser.click_on(".choice", "nothing")
        self.assertEqual(self.value(f"{panel}.lanes.length"), 2)

    def test_metric_changes_the_numbers(self):
        self.open("training", "view=top-down")
        before = self.numbers(0)
        self.value("(m => { m.value = 'CPU'; m.dispatchEvent(new Event('change')); })(document.getElementById('metric'))")
        self.assertNotEqual(self.numbers(0), before)
        self.assertIn("metric=CPU", self.value("location.hash"))

    def test_address_brings_back_what_was_shown(self):
        self.open("training", "view=top-down&node=40&metric=CPU&query=conv")
        self.assertEqual(self.value("[heddle.state.view, heddle.state.node, heddle.state.metric, document.getElementById('search').value]"), ["top-down", 40, "CPU", "conv"])
        self.assertIn(self.value("heddle.names[heddle.tree.frame[40]]"), self.rows())
        self.open("training", "view=nothing&node=99999999&metric=none&group=x")
        self.assertEqual(self.value("heddle.state.view"), "flame")

    def test_the_flame_graph_comes_first_and_advice_is_grouped(self):
        self.open("training")
        self.assertEqual(self.value("[heddle.state.view, document.querySelector('[role=tab]').id]"), ["flame", "tab-flame"])
        self.browser.click_on("#tab-overview")
        self.value("""(() => {
            const { advice } = heddle.profile, one = advice[0];
            for (let node = 1; node < 8; node++) advice.push({ ...one, node, rule: "far_from_floor" });
            heddle.generation++;
            heddle.set({});
        })()""")
        titles = self.value("[...document.querySelectorAll('.advice-head strong')].map(e => e.textContent)")
        self.assertEqual(titles.count("far from floor"), 1)
        self.assertIn("7 places", self.value("document.querySelector('.advice').textContent"))

    def compare(self):
        older = self.pages["slower"].read_text()
        self.value(f"heddle.compareWith(new File([{json.dumps(older)}], 'older.html'))")

    def test_difference_with_a_page_of_an_older_run(self):
        self.open("training", "view=top-down")
        self.compare()
        self.assertLess(self.value("heddle.tree.total('GKER', 'delta')"), 0)
        self.assertEqual(self.value("[...document.querySelectorAll('.table-head .sort')].map(e => e.textContent)")[:4], ["Name", "Change ▾", "Now", "Before"])
        for view in ("overview", "flame", "flat", "sandwich"):
            self.browser.click_on(f"#tab-{view}")
            self.assertGreater(colours(self.browser.screenshot()), 20)
        self.browser.click_on(".bar .plain", "End comparison")
        self.assertFalse(self.value("heddle.profile.isDifference"))

    def test_files_that_are_no_profiles_are_refused(self):
        self.open("training")
        for text in ("{", "<p>nothing</p>", '{"format": "trace"}'):
            self.value(f"heddle.compareWith(new File([{json.dumps(text)}], 'x.json'))")
            self.assertIn("x.json: This", self.value("document.querySelector('.notice').textContent"))
        self.assertFalse(self.value("heddle.profile.isDifference"))

    def test_hostile_names_are_text(self):
        self.open("hostile")
        for view in ("overview", "flame", "top-down", "bottom-up", "flat", "sandwich", "timeline", "roofline"):
            self.value(f"heddle.set({{view: '{view}', node: 1}})")
            self.browser.frame()
        self.assertIsNone(self.value("window.attacked"))
        self.assertEqual(self.value("document.querySelectorAll('script').length"), 2)
        self.assertEqual(self.value("document.querySelectorAll('img').length"), 0)
        self.assertIn("</script><script>window.attacked=1</script>", self.value("document.querySelector('.details h2').textContent"))

    def test_odd_shapes(self):
        for name in ("smallest", "deep"):
            self.open(name)
            for view in ("overview", "flame", "top-down", "bottom-up", "flat", "sandwich"):
                self.value(f"heddle.set({{view: '{view}'}}); heddle.hotPath()")
                self.browser.frame()
                self.value(f"heddle.set({{view: '{view}', node: heddle.tree.count - 1, direction: 'up'}})")
                self.browser.frame()
            self.assertEqual(self.browser.errors(), [])

    def test_large_profile(self):
        seconds = self.open("large")
        self.assertLess(seconds, LOAD_SECONDS)
        for view in ("flame", "top-down", "bottom-up", "flat", "timeline", "sandwich"):
            begin = time.monotonic()
            self.value(f"heddle.set({{view: '{view}'}})")
            self.browser.frame()
            self.assertLess(time.monotonic() - begin, LOAD_SECONDS, view)
        self.value("heddle.set({view: 'flat'}); heddle.panelOf('flat').table.view.isUnfolded = true; heddle.set({query: 'f1'})")
        self.assertGreater(self.value("heddle.panelOf('flat').table.entries.length"), 1000)
        self.assertLess(self.value("document.querySelectorAll('.table-rows .row').length"), 100)
        self.value("document.querySelector('.table-body').scrollTop = 20000")
        self.browser.frame()
        self.assertGreater(self.value("Number(document.querySelector('.table-rows .row').getAttribute('aria-rowindex'))"), 500)


if __name__ == "__main__":
    if not shutil.which("node") or not browser.executable():
        print("skipped: there is no node or no Chromium")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
