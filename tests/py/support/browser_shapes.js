// The shapes of each output cell of a notebook's page, as JSON: see browser.py, which runs this in the page.
(() => {
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const over = (front, back) => {
    const alpha = front[3] ?? 1;
    return [0, 1, 2].map((part) => front[part] * alpha + back[part] * (1 - alpha));
  };
  const backgroundOf = (element) => {
    if (!element) return [255, 255, 255];
    return over(numbers(getComputedStyle(element).backgroundColor), backgroundOf(element.parentElement));
  };
  const fillOf = (style) => {
    if (style.fill === "none") return [0, 0, 0, 0];
    const [red, green, blue, alpha = 1] = numbers(style.fill);
    return [red, green, blue, alpha * Number(style.fillOpacity)];
  };
  const boxOf = (place) => {
    const { left, top, right, bottom } = place.getBoundingClientRect();
    return [left + scrollX, top + scrollY, right + scrollX, bottom + scrollY];
  };
  const within = (inner, outer) =>
    inner[0] >= outer[0] && inner[1] >= outer[1] && inner[2] <= outer[2] && inner[3] <= outer[3];

  // A text of a drawing stands on the cells drawn before it.
  const drawingShapes = (drawing) => {
    const cells = [];
    return [...drawing.querySelectorAll("rect, path, text")].map((element) => {
      const style = getComputedStyle(element);
      const box = boxOf(element);
      let background = backgroundOf(drawing);
      for (const cell of cells) if (within(box, cell.box)) background = over(cell.fill, background);
      const fill = fillOf(style);
      if (element.tagName === "rect") cells.push({ box, fill });
      const text = element.tagName === "text" ? element.textContent : "";
      return { tag: element.tagName, kind: style.stroke, box, text, color: over(fill, background), background, hidden: 0 };
    });
  };
  const lineShapes = (block) => {
    const node = block.firstChild;
    let start = 0;
    return node.data.split("\n").map((text) => {
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, (start += text.length));
      start += 1;
      return { tag: "line", kind: "", box: boxOf(range), text, ...coloursOf(block), hidden: 0 };
    });
  };
  const coloursOf = (element) => {
    const background = backgroundOf(element);
    return { color: over(numbers(getComputedStyle(element).color), background), background };
  };
  const shapeOf = (element) => ({
    tag: element.tagName.toLowerCase(),
    kind: element.className.toString(),
    box: boxOf(element),
    text: ["TH", "TD", "P", "B"].includes(element.tagName) ? element.textContent : "",
    ...(element instanceof SVGElement ? { color: [0, 0, 0], background: backgroundOf(element.parentElement) } : coloursOf(element)),
    hidden: element.scrollWidth - element.clientWidth,
  });
  const shapesOf = (cell) =>
    [...cell.querySelectorAll(".jp-OutputArea-output")].flatMap((output) => [
      shapeOf(output),
      ...[...output.querySelectorAll("th, td, p, b, pre, svg, img")].flatMap((element) => [
        shapeOf(element),
        ...(element.tagName === "svg" ? drawingShapes(element) : []),
        ...(element.tagName === "PRE" && element.childNodes.length === 1 ? lineShapes(element) : []),
      ]),
    ]);
  const cells = [...document.querySelectorAll(".jp-CodeCell")].map((cell, number) => [number, shapesOf(cell)]);
  return JSON.stringify(Object.fromEntries(cells));
})();
