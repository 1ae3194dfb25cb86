// The pages of docs/guide/bridges.md, bundled as they stand there, on a server of the loopback interface.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const GUIDE = readFileSync(new URL('../../../../docs/guide/bridges.md', import.meta.url), 'utf8');
const CODE = [...GUIDE.matchAll(/^```jsx?\n([\s\S]*?)^```$/gm)].map(([, code]) => code);
/** What is between the head of a page and its script: that of the page with AG-UI, and that of the others. */
const [PLAIN, REACT] = [...GUIDE.matchAll(/^```html\n<!doctype html>.*\n([\s\S]*?)\n<script.*\n```$/gm)].map(([, markup]) => markup);

/** The page whose code imports a package. */
function code(imports) {
  const [own, ...others] = CODE.filter((known) => known.includes(`from '${imports}'`));
  if (!own || others.length) throw new Error(`the guide has ${others.length + Boolean(own)} pages that import ${imports}`);
  return own;
}

/** Pages by name: their code, their markup, and a folder with the packages that they import. */
const PAGES = {
  agUi: { code: CODE.find((known) => known.includes('document.querySelector(name)')), markup: PLAIN, packages: process.env.POSITRONIC_AG_UI },
  useChat: { code: code('@ai-sdk/react'), markup: REACT, packages: process.env.POSITRONIC_USE_CHAT },
  assistantUi: { code: code('@assistant-ui/react-ag-ui'), markup: REACT, packages: process.env.POSITRONIC_ASSISTANT_UI },
  copilotKit: { code: code('@copilotkit/react-core/v2'), markup: REACT, packages: process.env.POSITRONIC_COPILOTKIT },
};

const modules = (folder) => folder.slice(0, folder.lastIndexOf('node_modules') + 'node_modules'.length);
const { build } = createRequire(import.meta.url)(process.env.POSITRONIC_ESBUILD);

/** Bundles a page; `TOKEN` and `ADDRESS` are in its markup. */
async function bundle({ code, packages }) {
  const { outputFiles } = await build({
    stdin: { contents: code.replaceAll("'http://127.0.0.1:4747", "ADDRESS + '").replaceAll('`http://127.0.0.1:4747', '`${ADDRESS}'), loader: 'jsx', resolveDir: modules(packages) },
    bundle: true, format: 'iife', jsx: 'automatic', nodePaths: [modules(packages)], outdir: '/', write: false, define: { 'process.env.NODE_ENV': '"production"' },
    loader: { '.woff': 'empty', '.woff2': 'empty', '.ttf': 'empty' },
  });
  return Object.fromEntries(outputFiles.map(({ path, contents }) => [path.endsWith('.css') ? 'css' : 'js', contents]));
}

/** Serves pages; `of` says later which server of Positronic they use, and with which token. */
export async function serve(...names) {
  const bundles = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await bundle(PAGES[name])])));
  const server = createServer(({ url }, response) => {
    const [, name, file] = url.split('/');
    const own = bundles[name];
    if (!own) return response.writeHead(url === '/favicon.ico' ? 204 : 404).end();
    const type = { js: 'text/javascript', css: 'text/css' }[file];
    response.writeHead(200, { 'content-type': `${type ?? 'text/html'}; charset=utf-8` });
    if (type) return response.end(own[file]);
    const globals = `const ADDRESS = '${own.address}', TOKEN = '${own.token}';`;
    const style = own.css ? `<link rel="stylesheet" href="/${name}/css">` : '';
    return response.end(`<!doctype html><title>${name}</title>${style}${PAGES[name].markup}<script>${globals}</script><script src="/${name}/js"></script>`);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${server.address().port}`,
    of: (address, token) => Object.values(bundles).forEach((own) => Object.assign(own, { address, token })),
    close: () => server.close(),
  };
}
