// Starts the page.

import { h } from "./dom.js";
import { App, profileIn } from "./app.js";

function start() {
  const root = document.getElementById("page");
  try {
    const theme = localStorage.getItem("heddle-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Pages from files may have no storage.
  }
  try {
    window.heddle = new App(profileIn(document.getElementById("profile").textContent), root);
  } catch (error) {
    root.replaceChildren(h("div", { class: "failure", role: "alert" }, h("h1", {}, "This profile cannot be shown"), h("p", {}, error.message)));
    throw error;
  }
}

start();
