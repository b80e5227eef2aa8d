// Page of `glassformer inspect`. Its record is in the element "record".
import { inspection } from "./sections.js";

document.querySelector("main").append(...inspection(JSON.parse(document.getElementById("record").textContent)));
