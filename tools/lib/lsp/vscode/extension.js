// Starts `aton lsp` for graph text, and shows what a pipeline makes of an open file beside it.
const vscode = require("vscode");
const {LanguageClient} = require("vscode-languageclient/node");

let client;

exports.activate = async (context) => {
  const command = vscode.workspace.getConfiguration("aton").get("path");
  client = new LanguageClient("aton", "aton", {command, args: ["lsp"]}, {documentSelector: [{language: "aton-ir"}]});
  context.subscriptions.push(vscode.commands.registerCommand("aton-ir.runPasses", async () => {
    const file = vscode.window.activeTextEditor?.document;
    const pipeline = file && await vscode.window.showInputBox({prompt: "Passes, as aton-opt --passes takes them", value: "infer-types"});
    if (!pipeline) return;
    try {
      const content = await client.sendRequest("workspace/executeCommand", {command: "aton.runPasses", arguments: [file.uri.toString(), pipeline]});
      const shown = await vscode.workspace.openTextDocument({language: "aton-ir", content});
      await vscode.window.showTextDocument(shown, vscode.ViewColumn.Beside);
    } catch (e) {
      vscode.window.showErrorMessage(e.message);
    }
  }));
  await client.start();
};

exports.deactivate = () => client?.stop();
