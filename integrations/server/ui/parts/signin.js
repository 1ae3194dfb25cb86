// The form that signs a browser in with a token. A link of `positronic serve` does so without one.
import { quoted } from '../lib/cause.js';
import { tags } from '../lib/dom.js';
import { post } from '../lib/api.js';

const { button, form, input, label, p, span } = tags;

let [token, problem] = ['', null];
const send = async (event) => {
  event.preventDefault();
  await post('/session', { token }).then(() => location.reload(), (error) => { problem = error; });
};

export default () => form.signIn({ onsubmit: send, 'aria-label': 'Sign in with a token' },
  label('Or sign in with a token ', span.soft(quoted('(`token create` makes one)')),
    input({ type: 'password', required: true, autocomplete: 'off', value: token, oninput: ({ target }) => { token = target.value; } })),
  problem && p.problem({ role: 'alert' }, problem.message), button.primary('Sign in'));
