// SPDX-License-Identifier: Apache-2.0
// Tokens of each text as another program finds them, one JSON object a line.
// usage: node transformers.mjs FOLDER_OF_PACKAGES NAME texts.json
import {readFileSync} from 'node:fs';

const [folder, name, texts] = process.argv.slice(2);
const {TokenizerLoader} = await import(`${folder}/tokenizers/package/dist/main.mjs`);
const read = (file) => JSON.parse(readFileSync(`${folder}/tokenizer-${name}/package/models/${file}`, 'utf8'));
const tokenizerJSON = read('tokenizer.json');
const tokenizer = TokenizerLoader.fromPreTrained({tokenizerJSON, tokenizerConfig: read('tokenizer_config.json')});
// Its \d knows no digits but those of ASCII; the rule says Unicode's.
const skipsDigits = JSON.stringify(tokenizerJSON.pre_tokenizer ?? '').includes('"Digits"');
for (const text of JSON.parse(readFileSync(texts, 'utf8'))) {
    if (!(skipsDigits && /[^\P{N}0-9]/u.test(text)))
        console.log(JSON.stringify({text, tokens: Array.from(tokenizer.encode(text, {add_special_tokens: false}))}));
}
