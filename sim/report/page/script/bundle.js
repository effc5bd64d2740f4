// Makes ../templates/NAME.js, what a page may run of it (NAME_hash.txt) and LICENSES, from each script NAME.js here and
// the packages of package-lock.json: `npm ci && npm run bundle`. With --check it compares instead, and exits with 1.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const here = new URL('.', import.meta.url);
const names = ['chart', 'timeline'];

async function bundle(name) {
  const result = await build({
    entryPoints: [new URL(`${name}.js`, here).pathname], bundle: true, minify: true, write: false, metafile: true,
    format: 'iife', target: 'es2022', charset: 'ascii', legalComments: 'none',
  });
  const packages = Object.keys(result.metafile.inputs).map((file) => /node_modules\/([^/]+)\//.exec(file)?.[1]);
  const used = Object.entries(Object.values(result.metafile.outputs)[0].inputs)
    .filter(([, { bytesInOutput }]) => bytesInOutput > 0).map(([file]) => /node_modules\/([^/]+)\//.exec(file)?.[1]);
  return { code: result.outputFiles[0].text, packages: [...new Set(used)].filter((name) => packages.includes(name) && name).sort() };
}

// Each text once, under the names and releases of the packages that have it.
function licences(packages) {
  const texts = new Map();
  for (const name of packages) {
    const folder = new URL(`node_modules/${name}/`, here);
    const text = readFileSync(new URL('LICENSE', folder), 'utf8').trim().replaceAll(/[\u201c\u201d]/g, '"');
    const { version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8'));
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
  }
  return [...texts].map(([text, names]) => `${names.join(', ')}\n\n${text}\n`).join('\n');
}

function refuse(what) {
  console.error(what);
  process.exit(1);
}

function checked(script) {
  for (const word of ['{{', '</script', ')page"', '<!--'])
    if (script.includes(word))
      refuse(`the script holds ${word}, which its page would read as its own`);
  if (/@\w+@/.test(script))
    refuse('the script holds @WORD@, which CMake would replace');
  return script;
}

const used = new Set();
const files = {};
for (const name of names) {
  const { code, packages } = await bundle(name);
  const script = checked(`/*!\n${licences(packages)}*/\n${code.trim()}\n`);
  packages.forEach((each) => used.add(each));
  files[`../templates/${name}.js`] = script;
  files[`../templates/${name}_hash.txt`] = `'sha256-${createHash('sha256').update(script).digest('base64')}'`;
}
files.LICENSES = licences([...used].sort());
for (const [name, text] of Object.entries(files)) {
  const file = new URL(name, here);
  if (process.argv.includes('--check')) {
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text)
      refuse(`${name} is not what npm run bundle makes`);
  } else {
    writeFileSync(file, text);
  }
}
console.log(`${used.size} packages, ${names.map((name) => `${name} ${files[`../templates/${name}.js`].length} bytes`).join(', ')}`);
