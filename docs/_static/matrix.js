// Filters the rows of the support matrix. The choice stands in the address, so that it can be sent to someone.
"use strict";
(() => {
  const rows = [...document.querySelectorAll("#matrix tbody tr")];
  const fields = ["search", "family", "npu", "dtype", "grad"];
  const input = Object.fromEntries(fields.map((name) => [name, document.getElementById("matrix-" + name)]));
  const facts = rows.map((row) => ({
    row,
    text: row.cells[0].textContent.toLowerCase() + " " + row.cells[3].textContent.toLowerCase(),
    family: row.dataset.family,
    npu: row.dataset.npu,
    dtypes: row.cells[4].textContent.replace(/[[\]]/g, "").split(" "),
    grad: row.cells[5].textContent,
  }));

  function apply() {
    const words = input.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const f of facts) {
      const fits =
        words.every((word) => f.text.includes(word)) &&
        (!input.family.value || f.family === input.family.value) &&
        (!input.npu.value || f.npu === input.npu.value) &&
        (!input.dtype.value || f.dtypes.includes(input.dtype.value)) &&
        (!input.grad.value || f.grad === input.grad.value);
      f.row.hidden = !fits;
      shown += fits;
    }
    document.getElementById("matrix-count").textContent = `${shown} of ${rows.length} rows`;
    const chosen = new URLSearchParams();
    for (const name of fields) if (input[name].value) chosen.set(name, input[name].value);
    history.replaceState(null, "", chosen.size ? "?" + chosen : location.pathname);
  }

  const given = new URLSearchParams(location.search);
  for (const name of fields) {
    if (given.has(name)) input[name].value = given.get(name);
    input[name].addEventListener("input", apply);
  }
  apply();
})();
