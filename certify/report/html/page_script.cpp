#include "certify/report/html/page_script.hpp"

namespace attest::certify {

const char* const kPageScript = R"js(/*<![CDATA[*/
(function () {
  'use strict';
  var FEW = 6;
  function text(row, column) {
    var cell = row.cells[column];
    return cell ? cell.textContent.trim() : '';
  }
  // Thousands are apart by thin spaces or commas; a unit or a mark may follow.
  function number(words) {
    var plain = words.replace(/[\u2009,](?=\d{3})/g, '').replace('\u2212', '-');
    return /^[-+]?[\d.]/.test(plain) ? parseFloat(plain) : NaN;
  }
  function compare(a, b) {
    var x = number(a), y = number(b);
    if (isNaN(x) || isNaN(y)) {
      if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
      return a.localeCompare(b, 'en', {numeric: true});
    }
    return x - y;
  }
  function sort(table, heads, column) {
    var falling = heads[column].getAttribute('aria-sort') === 'ascending';
    var rows = Array.prototype.slice.call(table.tBodies[0].rows);
    rows.sort(function (p, q) {
      var order = compare(text(p, column), text(q, column));
      return falling ? -order : order;
    });
    rows.forEach(function (row) { table.tBodies[0].appendChild(row); });
    heads.forEach(function (head) { head.removeAttribute('aria-sort'); });
    heads[column].setAttribute('aria-sort', falling ? 'descending' : 'ascending');
  }
  function show(table) {
    var words = (table.words || '').toLowerCase().split(/\s+/), shown = 0;
    Array.prototype.forEach.call(table.tBodies[0].rows, function (row) {
      var all = row.textContent.toLowerCase();
      var visible = (!table.key || row.getAttribute('data-key') === table.key) &&
        words.every(function (word) { return all.indexOf(word) >= 0; });
      row.hidden = !visible;
      shown += visible ? 1 : 0;
    });
    if (table.told) table.told.textContent = shown + ' of ' + table.tBodies[0].rows.length;
  }
  document.querySelectorAll('table.data').forEach(function (table) {
    var heads = Array.prototype.slice.call(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      if (!head.textContent.trim()) return;
      head.tabIndex = 0;
      head.classList.add('sorts');
      head.title = 'sort';
      head.addEventListener('click', function () { sort(table, heads, column); });
      head.addEventListener('keydown', function (event) {
        if (event.key === 'Enter' || event.key === ' ') {
          event.preventDefault();
          sort(table, heads, column);
        }
      });
    });
    if (table.tBodies[0].rows.length > FEW) {
      var line = document.createElement('p'), field = document.createElement('input');
      table.told = document.createElement('span');
      line.className = 'filter';
      field.type = 'search';
      field.placeholder = 'filter rows';
      field.setAttribute('aria-label', 'filter rows');
      field.addEventListener('input', function () { table.words = field.value; show(table); });
      line.append(field, table.told);
      table.parentNode.before(line);
      show(table);
    }
  });
  document.querySelectorAll('button.count').forEach(function (button) {
    var table = document.getElementById(button.getAttribute('data-table'));
    button.addEventListener('click', function () {
      var key = button.getAttribute('data-key');
      table.key = table.key === key ? '' : key;
      document.querySelectorAll('button.count').forEach(function (other) {
        other.setAttribute('aria-pressed', String(other.getAttribute('data-key') === table.key));
      });
      show(table);
      table.scrollIntoView({block: 'nearest'});
    });
  });
}());
/*]]>*/)js";

}  // namespace attest::certify
