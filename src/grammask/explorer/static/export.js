// Files out of a view: its data as JSON, and its results as a picture drawn by the browser itself.

export function saveJson(view, data) {
  save(new Blob([JSON.stringify(data, null, 1)], { type: "application/json" }), `grammask-${view}.json`);
}

/** The element as a PNG at twice its size: its markup and the style sheet inside of an SVG, drawn on a canvas. */
export async function savePng(view, element) {
  const { width, height } = element.getBoundingClientRect();
  const styles = (await (await fetch("static/style.css")).text());
  const copy = element.cloneNode(true);
  copy.style.width = `${width}px`;
  const page = document.createElement("div");
  page.dataset.theme = document.documentElement.dataset.theme;
  page.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  page.className = "exported";
  const sheet = document.createElement("style");
  sheet.textContent = `${styles}\n.exported{background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,"Noto Sans","DejaVu Sans",sans-serif;padding:12px}.exported .scroll,.exported .chips,.exported .graph{overflow:visible;max-height:none}`;
  const body = document.createElement("div");
  body.id = "exported";
  body.style.display = "grid";
  body.style.gap = "1rem";
  body.append(...copy.childNodes);
  page.append(sheet, body);
  const markup = new XMLSerializer().serializeToString(page);
  const w = Math.ceil(width + 24), h = Math.ceil(height + 24);
  const drawing = `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}"><foreignObject width="100%" height="100%">${markup}</foreignObject></svg>`;
  const image = new Image();
  await new Promise((resolve, reject) => {
    image.onload = resolve;
    image.onerror = () => reject(new Error("this browser cannot draw the page as a picture"));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(drawing)}`;
  });
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, 8000 / Math.max(w, h));
  canvas.width = w * scale;
  canvas.height = h * scale;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.drawImage(image, 0, 0);
  const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!blob) throw new Error("this browser cannot draw the page as a picture");
  save(blob, `grammask-${view}.png`);
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
