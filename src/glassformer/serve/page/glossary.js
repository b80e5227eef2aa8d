// Terms that translations must contain, kept in this browser.

import { el } from "./elements.js";
import { t } from "./strings.js";

/** The editor of the glossary; `changed` is called when it changes. */
export function glossary(changed) {
  const input = el("textarea", { id: "glossary", rows: 5, spellcheck: "false", "aria-describedby": "glossary-help" });
  input.value = localStorage.getItem("glossary") ?? "";
  input.addEventListener("input", () => {
    localStorage.setItem("glossary", input.value);
    check();
    changed();
  });
  const problem = el("p", { class: "status problem", role: "status" });
  const rows = () => input.value.split("\n").map((line) => line.split("=").map((side) => side.trim()));
  const isTerm = (sides) => sides.length === 2 && sides.every((side) => side.length <= 200 && side.split("|").every((form) => form.trim()));
  const pairs = () => rows().filter(isTerm).slice(0, 500);
  const check = () => {
    const wrong = rows().findIndex((sides) => sides.join("") && !isTerm(sides));
    problem.textContent = wrong < 0 ? "" : t("notATerm", wrong + 1);
  };
  check();
  const node = el("details", {}, el("summary", {}, t("glossary")),
    el("label", { for: "glossary", id: "glossary-help" }, t("glossaryHelp")), input, problem);
  return { node, pairs };
}
