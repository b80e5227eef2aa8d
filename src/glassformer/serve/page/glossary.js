// Terms that translations must contain, kept in this browser.

import { el } from "./elements.js";
import { t } from "./strings.js";

/** The editor of the glossary; `changed` is called when it changes. */
export function glossary(changed) {
  const input = el("textarea", { id: "glossary", rows: 5, spellcheck: "false", "aria-describedby": "glossary-help" });
  input.value = localStorage.getItem("glossary") ?? "";
  input.addEventListener("input", () => {
    localStorage.setItem("glossary", input.value);
    changed();
  });
  const pairs = () => input.value.split("\n").map((line) => line.split("=").map((side) => side.trim()))
    .filter((sides) => sides.length === 2 && sides.every((side) => side && side.length <= 200 && side.split("|").every((form) => form.trim())))
    .slice(0, 500);
  const node = el("details", {}, el("summary", {}, t("glossary")),
    el("label", { for: "glossary", id: "glossary-help" }, t("glossaryHelp")), input);
  return { node, pairs };
}
